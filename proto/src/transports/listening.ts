import { TrunklineError } from '../errors.js';
import type { Listener } from '../ports.js';
import { type Address, formatAddress } from './address.js';
import { bindIpc, type IpcFile, removeIpc } from './ipc.js';

/** A listener before it is bound. */
export interface Bindable extends Listener {
  /** Binds. Rejects with the system's own error; the listener is then closed. Resolves with the port, 0 for a path. */
  start(): Promise<number>;
  /** From now on batches arrive. `release` runs once the address is free again. */
  serve(address: string, release: () => Promise<void>): void;
}

/**
 * Binds a listener and lets it serve, or leaves nothing of it.
 * @param open throws when the transport was closed meanwhile
 * @param gone called once the listener is over
 * @throws TrunklineError ADDRESS_INVALID, ADDRESS_IN_USE; what `open` throws
 */
export async function bind(
  text: string,
  target: Address,
  listener: Bindable,
  open: () => void,
  gone: () => void,
): Promise<void> {
  let file: IpcFile | undefined;
  const release = async () => {
    gone();
    if (file !== undefined) await removeIpc(file);
  };
  try {
    let address = target;
    if (target.scheme === 'ipc') ({ file } = await bindIpc(target.path, () => listener.start()));
    else address = { ...target, port: await listener.start() };
    open();
    listener.serve(formatAddress(address), release);
  } catch (error) {
    await listener.close();
    await release();
    throw listenError(text, error);
  }
}

function listenError(address: string, error: unknown): unknown {
  if (error instanceof TrunklineError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const code = (error as { code?: string }).code === 'EADDRINUSE' ? 'ADDRESS_IN_USE' : 'ADDRESS_INVALID';
  return new TrunklineError(code, `cannot listen at "${address}": ${reason}`, { cause: error });
}
