import { type Meta, TrunklineError } from '@trunkline/proto';
import type { Entry } from './publish-backlog.js';

/** One message of `publishMany`. */
export interface PublishMessage extends Partial<Meta> {
  readonly body?: unknown;
  /** The body, a string or bytes, is JSON already. */
  readonly json?: boolean;
}

/** Some messages of a `publishMany` were not stored. */
export class PublishManyError extends TrunklineError {
  constructor(
    first: TrunklineError,
    /** The sequence of each message that was stored; undefined for the others. */
    readonly sequences: readonly (number | undefined)[],
  ) {
    const left = sequences.filter((sequence) => sequence === undefined).length;
    super(first.code, `${left} of ${sequences.length} messages were not confirmed: ${first.message}`, {
      retryable: first.retryable,
      cause: first,
    });
  }
}

/** Takes one message. @throws TrunklineError it cannot be taken, whatever room there is */
type Take = (
  message: PublishMessage,
  stored: (sequence: number) => void,
  failed: (error: TrunklineError) => void,
) => Entry;

/** The messages of one `publishMany`: they are taken one behind the other, as there is room. */
export class Batch {
  readonly promise: Promise<number[]>;
  private readonly sequences: (number | undefined)[];
  /** Taken, and without an answer. */
  private readonly open = new Set<Entry>();
  private next = 0;
  private left: number;
  private first: TrunklineError | undefined;
  private resolve: (sequences: number[]) => void = () => {};
  private reject: (error: TrunklineError) => void = () => {};

  constructor(
    private readonly messages: readonly PublishMessage[],
    /** When it is too late for those that are not taken yet. */
    readonly deadline: number,
    private readonly take: Take,
    private readonly done: () => void,
  ) {
    this.sequences = messages.map(() => undefined);
    this.left = messages.length;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** Whether all of its messages are taken. */
  get taken(): boolean {
    return this.next === this.messages.length;
  }

  takeNext(): void {
    const index = this.next++;
    const settled = (error?: TrunklineError) => {
      if (entry !== undefined) this.open.delete(entry);
      this.settled(error);
    };
    const stored = (sequence: number) => {
      this.sequences[index] = sequence;
      settled();
    };
    let entry: Entry | undefined;
    try {
      entry = this.take(this.messages[index]!, stored, settled);
      if (!entry.settled) this.open.add(entry);
    } catch (error) {
      // what the caller has changed since it was looked at
      settled(error instanceof TrunklineError ? error : new TrunklineError('BODY_INVALID', String(error)));
    }
  }

  /** What is not taken yet never will be. */
  refuseRest(error: TrunklineError): void {
    const rest = this.messages.length - this.next;
    this.next = this.messages.length;
    for (let count = 0; count < rest; count++) this.settled(error);
  }

  /** What is taken and has no answer. */
  get entries(): readonly Entry[] {
    return [...this.open];
  }

  private settled(error: TrunklineError | undefined): void {
    this.first ??= error;
    this.left--;
    if (this.left > 0) return;
    this.done();
    if (this.first === undefined) this.resolve(this.sequences as number[]);
    else this.reject(new PublishManyError(this.first, this.sequences));
  }
}
