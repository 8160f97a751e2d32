import { type Session, TrunklineError } from '@trunkline/proto';
import { aborted } from './options.js';

/** Most application messages that may wait for credit. */
const MAX_WAITING = 1024;

interface Waiter {
  readonly message: Uint8Array;
  resolve(): void;
  reject(error: TrunklineError): void;
}

/** Sends application messages, in order, as the peer's credit allows. */
export class Sender {
  private readonly waiting = new Set<Waiter>();
  private session: Session | undefined;

  get size(): number {
    return this.waiting.size;
  }

  open(session: Session): void {
    this.session = session;
  }

  /** What waits was not sent. */
  lost(error: TrunklineError): void {
    this.session = undefined;
    for (const waiter of [...this.waiting]) waiter.reject(error);
  }

  /** @throws TrunklineError DISCONNECTED, MESSAGE_TOO_LARGE, LIMIT_EXCEEDED, ABORTED: it was not sent */
  async send(message: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    const { session } = this;
    if (session === undefined) throw new TrunklineError('DISCONNECTED', undefined, { retryable: true });
    if (message.length > session.peerMaxMessage) {
      const text = `message has ${message.length} bytes, at most ${session.peerMaxMessage}`;
      throw new TrunklineError('MESSAGE_TOO_LARGE', text);
    }
    if (write(session, message)) return;
    if (this.waiting.size >= MAX_WAITING) {
      throw new TrunklineError('LIMIT_EXCEEDED', `${MAX_WAITING} messages wait for credit`, { retryable: true });
    }
    await this.wait(message, signal);
  }

  private wait(message: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => waiter.reject(aborted(signal!));
      const done = () => {
        this.waiting.delete(waiter);
        signal?.removeEventListener('abort', abort);
      };
      const waiter: Waiter = {
        message,
        resolve: () => {
          done();
          resolve();
        },
        reject: (error) => {
          done();
          reject(error);
        },
      };
      this.waiting.add(waiter);
      signal?.addEventListener('abort', abort);
    });
  }

  credit(session: Session): void {
    for (const waiter of this.waiting) {
      if (!write(session, waiter.message)) return;
      waiter.resolve();
    }
  }
}

function write(session: Session, message: Uint8Array): boolean {
  const at = session.reserveData(message.length);
  if (at < 0) return false;
  session.target.set(message, at);
  return true;
}
