import { unlinkSync, writeFileSync } from 'node:fs';
import { curveKeyPair } from '@trunkline/proto/zmq';
import type { Command, Input } from '../command.js';
import { Exit, Failure } from '../exit.js';
import { stdout } from '../output.js';

const SECRET_MODE = 0o600;

export const keygen: Command = {
  name: 'keygen',
  summary: 'make a pair of keys for encryption (CURVE)',
  count: { least: 0, most: 0 },
  options: { out: { value: 'NAME', help: 'write NAME.public and NAME.secret, which only its owner may read' } },
  details: `Prints "public KEY" and "secret KEY"; with --out the public key alone. Files that are there are not overwritten.
docs/security.md says which key goes where.`,
  async run(input: Input): Promise<number> {
    const { publicKey, secretKey } = curveKeyPair();
    const name = input.text('out');
    if (name === undefined) {
      stdout.line(`public ${publicKey}`);
      stdout.line(`secret ${secretKey}`);
      return Exit.OK;
    }
    writeNew(`${name}.secret`, secretKey, SECRET_MODE);
    try {
      writeNew(`${name}.public`, publicKey);
    } catch (error) {
      unlinkSync(`${name}.secret`);
      throw error;
    }
    stdout.line(publicKey);
    return Exit.OK;
  },
};

function writeNew(file: string, key: string, mode?: number): void {
  try {
    writeFileSync(file, `${key}\n`, { flag: 'wx', ...(mode === undefined ? {} : { mode }) });
  } catch (error) {
    throw new Failure(Exit.FAILED, (error as Error).message);
  }
}
