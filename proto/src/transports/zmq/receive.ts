import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Dealer, Event, Router } from 'zeromq';
import { LONGEST_TURN } from '../../turns.js';
import { guarded, receiverFailed } from '../guarded.js';
import type { ZmqSettings } from './settings.js';

export interface Receiver {
  /** Takes one message's frames and says how many bytes they had. */
  take(frames: Buffer[]): number;
  /** After each bounded step. */
  stepEnd(): void;
  /** Polled sockets only: before each look at the socket. */
  tick?(): void;
  /** Set by the loop: it waits for a message that is not there yet. */
  waiting?: boolean;
  /** True when the owner wants no more; then the loop ends quietly. */
  readonly ended: boolean;
}

/** Longest pause of a polled socket that has nothing to read, in ms. */
const longestPauseMs = 8;

/**
 * Reads a socket in bounded steps until it is closed. Nothing that a receiver throws ends the loop.
 *
 * While a receive waits, nobody may look at `readable` or `writable`: looking takes the wake-up that the receive waits
 * for, and it sleeps on beside a full socket. Sending is safe, it looks after the receive itself.
 */
export async function receiveLoop(socket: Router | Dealer, receiver: Receiver, settings: ZmqSettings): Promise<void> {
  const step = new Step(receiver, settings);
  let idleMs = 1;
  while (!receiver.ended) {
    if (settings.polled) {
      step.tick();
      if (receiver.ended) return;
      if (!socket.readable) {
        await pause(idleMs);
        idleMs = Math.min(idleMs * 2, longestPauseMs);
        continue;
      }
      idleMs = 1;
    }
    let failed = false;
    try {
      // one promise for each batch and no other: what a step waits for is added to every message's way
      do {
        receiver.waiting = true;
        const frames = await socket.receive();
        receiver.waiting = false;
        if (receiver.ended) break;
        step.take(frames);
      } while (!step.full && !receiver.ended && socket.readable);
    } catch (error) {
      failed = !receiver.ended && !socket.closed;
      if (failed) receiverFailed(settings, error, 'receiving failed');
    }
    // others have a turn between full steps
    const full = step.full || failed;
    // also when it ended meanwhile: what the step caused waits for its end
    step.end();
    if (full && !receiver.ended) await nextTurn();
  }
}

/** What one step has received so far. Nothing that the receiver throws comes out of it. */
class Step {
  private batches = 0;
  private bytes = 0;
  private begun = 0;

  constructor(
    private readonly receiver: Receiver,
    private readonly settings: ZmqSettings,
  ) {}

  get full(): boolean {
    const { stepBatches, stepBytes } = this.settings;
    if (this.batches >= stepBatches || this.bytes >= stepBytes) return true;
    return this.batches > 0 && performance.now() - this.begun > LONGEST_TURN;
  }

  take(frames: Buffer[]): void {
    if (this.batches === 0) this.begun = performance.now();
    this.batches++;
    try {
      this.bytes += this.receiver.take(frames);
    } catch (error) {
      receiverFailed(this.settings, error);
    }
  }

  end(): void {
    if (this.batches === 0) return;
    const { bytes } = this;
    this.batches = 0;
    this.bytes = 0;
    try {
      this.receiver.stepEnd();
    } catch (error) {
      receiverFailed(this.settings, error);
    }
    this.settings.received(bytes);
  }

  tick(): void {
    guarded(this.settings, () => this.receiver.tick?.());
  }
}

/** Not a Buffer, whose `slice` is no copy: what the core cuts out and writes into must be its own. */
export function plainBytes(frame: Buffer): Uint8Array {
  return new Uint8Array(frame.buffer, frame.byteOffset, frame.length);
}

/**
 * Hands over a socket's monitor events until the socket is gone, which is when the promise resolves. The monitor must
 * be read to its end: one that nobody reads blocks the I/O thread of every socket.
 */
export async function monitorLoop(socket: Router | Dealer, settings: ZmqSettings, on: (event: Event) => void) {
  const observer = socket.events;
  for (let count = 1; !observer.closed; count++) {
    let event: Event;
    try {
      event = await observer.receive();
    } catch {
      return;
    }
    if (event.type === 'end') return;
    guarded(settings, () => on(event));
    if (count % 64 === 0) await nextTurn();
  }
}

/** How much longer than its linger a closed socket may take to be gone, in ms. */
const closeGraceMs = 800;

/** Waits until closed sockets are gone, but no longer than they may need: closing never hangs. */
export async function ended(gone: Promise<unknown>, settings: ZmqSettings): Promise<void> {
  let limit: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    limit = setTimeout(resolve, settings.lingerMs + closeGraceMs);
  });
  await Promise.race([gone, late]);
  clearTimeout(limit);
}
