import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { curveKeyPair } from '@trunkline/proto/zmq';

export interface Pair {
  readonly publicKey: string;
  readonly secretKey: string;
}

/** Writes the key files of a dispatcher into a folder, under the names of `examples/secured/trunkline.json`. */
export function writeKeys(
  folder: string,
  { own = curveKeyPair(), allowed = [curveKeyPair().publicKey] }: { own?: Pair; allowed?: readonly string[] } = {},
): { readonly curve: { publicKeyFile: string; secretKeyFile: string; allowedKeysFile: string } } {
  const [publicKeyFile, secretKeyFile, allowedKeysFile] = [
    join(folder, 'dispatcher.public'),
    join(folder, 'dispatcher.secret'),
    join(folder, 'allowed.keys'),
  ];
  writeFileSync(publicKeyFile, `${own.publicKey}\n`);
  writeFileSync(secretKeyFile, `${own.secretKey}\n`);
  writeFileSync(allowedKeysFile, `# who may come in\n${allowed.join('  # somebody\n')}\n`);
  return { curve: { publicKeyFile, secretKeyFile, allowedKeysFile } };
}
