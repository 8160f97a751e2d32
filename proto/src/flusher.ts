import { type FaultListener, reportFault } from './fault.js';

/** Something with bytes to send. */
export interface Flushable {
  flush(): void;
}

/**
 * Flushes once per step, not once per message. Within a step of a transport (`hold` … `release`) everything waits for
 * its end; outside of one the flush comes as soon as the running code returns.
 */
export class Flusher {
  private dirty: Flushable[] = [];
  private spare: Flushable[] = [];
  private held = false;
  private scheduled = false;
  private flushing = false;
  private readonly run = () => {
    this.scheduled = false;
    if (!this.held) this.flush();
  };

  /** @param defer runs a function after the code that runs now, in the same turn: `queueMicrotask` in a process */
  constructor(
    private readonly defer: (run: () => void) => void,
    private readonly onFault?: FaultListener,
  ) {}

  /** Call once per flushable until it was flushed. */
  add(item: Flushable): void {
    this.dirty.push(item);
    if (!this.held && !this.scheduled) {
      this.scheduled = true;
      this.defer(this.run);
    }
  }

  hold(): void {
    this.held = true;
  }

  release(): void {
    this.held = false;
    this.flush();
  }

  /** One that fails does not keep the others from being flushed. Called from within a flush it does nothing. */
  flush(): void {
    if (this.flushing) return;
    this.flushing = true;
    const errors: unknown[] = [];
    while (this.dirty.length > 0) {
      const items = this.dirty;
      this.dirty = this.spare;
      for (let index = 0; index < items.length; index++) {
        try {
          items[index]!.flush();
        } catch (error) {
          errors.push(error);
        }
      }
      items.length = 0;
      this.spare = items;
    }
    this.flushing = false;
    for (const error of errors) reportFault(this.onFault, error);
  }
}
