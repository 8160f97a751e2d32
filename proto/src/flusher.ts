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
  private readonly defer: (run: () => void) => void;
  private readonly run = () => {
    this.scheduled = false;
    if (!this.held) this.flush();
  };

  /** @param defer runs a function after the code that runs now, in the same turn: `queueMicrotask` in a process */
  constructor(defer: (run: () => void) => void) {
    this.defer = defer;
  }

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

  flush(): void {
    while (this.dirty.length > 0) {
      const items = this.dirty;
      this.dirty = this.spare;
      this.spare = items;
      for (let index = 0; index < items.length; index++) items[index]!.flush();
      items.length = 0;
    }
  }
}
