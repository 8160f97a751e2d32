import { LONGEST_TURN } from '../../turns.js';
import { guarded } from '../guarded.js';
import type { Settings } from '../settings.js';

/** Whose connections share one step. */
export interface StepOwner {
  /** After each bounded step. */
  stepEnd(): void;
}

/**
 * Joins what one turn of the event loop receives, on however many connections, into a step: its end comes once all that
 * was there has been read, or when the step is full.
 */
export class Step {
  private batches = 0;
  private bytes = 0;
  /** When the turn that is scheduled began to read. */
  private begun = 0;
  private scheduled = false;
  private readonly resume: (() => void)[] = [];
  private readonly turn = () => {
    this.scheduled = false;
    this.end();
    // the first one had most of the time: now it is the turn of the next
    const [first, ...others] = this.resume.splice(0);
    for (const resume of others) resume();
    first?.();
  };

  constructor(
    private readonly owner: StepOwner,
    private readonly settings: Settings,
  ) {}

  /** Before each batch. */
  begin(): void {
    this.batches++;
    if (this.scheduled) return;
    this.begun = performance.now();
    this.schedule();
  }

  /** After each batch, with its bytes. */
  took(bytes: number): void {
    this.bytes += bytes;
    const { stepBatches, stepBytes } = this.settings;
    if (this.batches >= stepBatches || this.bytes >= stepBytes) this.end();
  }

  /** Whether it goes on for so long, in one step or several, that timers want a turn; no more should be read before `later`. */
  get overdue(): boolean {
    return this.scheduled && performance.now() - this.begun > LONGEST_TURN;
  }

  /** Calls when others have had their turn. */
  later(resume: () => void): void {
    this.resume.push(resume);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(this.turn);
  }

  private end(): void {
    if (this.batches === 0) return;
    const { bytes } = this;
    this.batches = 0;
    this.bytes = 0;
    guarded(this.settings, () => this.owner.stepEnd());
    this.settings.received(bytes);
  }
}
