import { type Clock, type Flusher, type Log, type Timers, TrunklineError } from '@trunkline/proto';
import { Committer, groupRecord, queueRecord, TIME_RECORD } from './committer.js';
import { Declaration, type QueueDeclaration } from './declaration.js';
import type { Group } from './group.js';
import type { MessageFilter, QueueOptions } from './options.js';
import type { Confirm, Publisher, PublishRefusal } from './publisher.js';
import { type DeadLetter, Queue, type QueueHost } from './queue.js';
import { RecordReader } from './record-bytes.js';
import { Restorer } from './restorer.js';
import type { Damage, Store } from './store.js';
import { withAttributes } from './stored-message.js';

/** The queues' time is stored so often that a restart may lose about this much of it, ms. */
const TIME_MARGIN = 1000;

export interface QueuesOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly flusher: Flusher;
  readonly log: Log;
  /** Where queues on disk are; without one there can be none. */
  readonly store?: Store | undefined;
  /** Milliseconds since 1970; read once, when the store is opened. */
  readonly date: () => number;
  /** @throws TrunklineError FILTER_INVALID */
  readonly compile: (filter: string) => MessageFilter;
}

/** A queue and how it is addressed. */
export interface QueueEntry {
  readonly queue: Queue;
  declaration: Declaration;
  /** Whether it is served: a queue that was taken out of the configuration keeps its messages. */
  served: boolean;
}

/** All queues by service code, and the store that they share. */
export class Queues implements QueueHost {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly store: Store | undefined;
  readonly committer: Committer;
  /** Parts of the store that could not be read when it was opened. */
  readonly damages: Damage[] = [];
  private readonly entries = new Map<number, QueueEntry>();
  private readonly byQueue = new Map<Queue, QueueEntry>();
  /** Dead letter queues that take nothing now, and why. */
  private readonly unburied = new Map<number, string>();
  private nextId = 1;
  private base: number;
  private origin: number;

  constructor(private readonly options: QueuesOptions) {
    const { clock, timers, log, store, flusher } = options;
    this.clock = clock;
    this.timers = timers;
    this.log = log;
    this.store = store;
    this.base = options.date();
    this.origin = clock.now();
    this.committer = new Committer({
      store,
      flusher,
      timers,
      log,
      time: () => this.time(),
      encodeQueue: (queue) => this.encodeQueue(queue),
    });
  }

  // ---- what queues need ----

  time(): number {
    return Math.floor(this.base + this.clock.now() - this.origin);
  }

  refusal(): PublishRefusal | undefined {
    return this.committer.refusal;
  }

  compile(filter: string): MessageFilter {
    return this.options.compile(filter);
  }

  queueChanged(queue: Queue, urgent: boolean): void {
    this.committer.queueChanged(queue, urgent);
  }

  groupChanged(group: Group, urgent: boolean): void {
    this.committer.groupChanged(group, urgent);
  }

  publisherChanged(queue: Queue, publisher: Publisher | undefined, id: string): void {
    // the records of a queue that is gone were deleted with it
    if (queue.durable && !(queue.closed && publisher !== undefined)) {
      this.committer.publisherChanged(queue, publisher, id);
    }
  }

  bury(queue: Queue, letter: DeadLetter, confirm: Confirm): void {
    const { deadLetter } = queue.options;
    const target = this.find(deadLetter);
    if (target === undefined) {
      this.notBuried(
        deadLetter,
        { code: 'UNKNOWN_SERVICE', message: 'there is no such queue', retryable: true },
        confirm,
      );
      return;
    }
    const { group, sequence, count, reason } = letter;
    const message = withAttributes(letter.bytes, letter.at, {
      deadReason: reason,
      deadOrigin: this.byQueue.get(queue)?.declaration.code ?? 0,
      deadGroup: group,
      deadSequence: sequence,
      deadCount: count,
    });
    target.inlet.append(message, {
      assigned: () => confirm.assigned?.(),
      stored: (...told) => {
        this.unburied.delete(deadLetter);
        confirm.stored(...told);
      },
      refused: (_number, _count, refusal) => this.notBuried(deadLetter, refusal, confirm),
    });
  }

  private notBuried(deadLetter: number, refusal: PublishRefusal, confirm: Confirm): void {
    const { code, message } = refusal;
    // it is tried again and again, and told once
    if (this.unburied.get(deadLetter) !== code) {
      this.log.error({ deadLetter, code, error: message }, 'messages cannot be brought to their dead letter queue');
    }
    this.unburied.set(deadLetter, code);
    confirm.refused(0, 1, refusal);
  }

  // ---- the store ----

  /** Opens the store and brings back what is in it. @throws TrunklineError STORE_DAMAGED, STORE_LOCKED, STORE_FAILED */
  async open(): Promise<void> {
    if (this.store === undefined) return;
    const contents = await this.store.open();
    this.origin = this.clock.now();
    const restorer = new Restorer(this, contents, (damage) => this.damaged(damage));
    const time = contents.records.get(TIME_RECORD);
    const stored = time && restorer.decoded(TIME_RECORD, () => new RecordReader(time).integer());
    this.base = Math.max(this.options.date(), (stored ?? 0) + TIME_MARGIN);
    for (const damage of contents.damages) this.damaged(damage);
    for (const { queue, declaration } of restorer.restore()) {
      this.enter({ queue, declaration, served: declaration.by === 'admin' });
    }
    this.nextId = restorer.nextId;
    const messages = [...this.entries.values()].reduce((sum, { queue }) => sum + queue.depth, 0);
    this.log.info({ queues: this.entries.size, messages }, 'store open');
  }

  private damaged(damage: Damage): void {
    this.damages.push(damage);
    this.log.error({ ...damage }, 'a part of the store cannot be read');
  }

  private encodeQueue(queue: Queue): Uint8Array {
    const entry = this.byQueue.get(queue);
    if (entry === undefined) throw new TrunklineError('STATE_INVALID', 'a queue without an entry is stored');
    return entry.declaration.encode(queue);
  }

  private enter(entry: QueueEntry): void {
    this.entries.set(entry.declaration.code, entry);
    this.byQueue.set(entry.queue, entry);
  }

  // ---- the queues ----

  /** The queue behind a code, if it is served. */
  find(code: number): Queue | undefined {
    const entry = this.entries.get(code);
    return entry?.served ? entry.queue : undefined;
  }

  entry(code: number): QueueEntry | undefined {
    const entry = this.entries.get(code);
    return entry?.served ? entry : undefined;
  }

  *all(): Generator<QueueEntry> {
    for (const entry of this.entries.values()) if (entry.served) yield entry;
  }

  /** @throws TrunklineError OPTION_INVALID: these declarations cannot be applied; nothing was changed */
  checkConfiguration(declarations: readonly QueueDeclaration[]): void {
    for (const { code, options } of declarations) {
      this.check(code, options);
      const known = this.entries.get(code);
      if (known?.served) this.checkStorage(known, options);
    }
  }

  private checkStorage({ queue, declaration }: QueueEntry, { storage }: QueueOptions): void {
    if (queue.options.storage === storage) return;
    const message = `the storage of queue ${declaration.code} cannot be changed: delete it first`;
    throw new TrunklineError('OPTION_INVALID', message);
  }

  /** Queues as the configuration has them now; those it does not have any more are served no longer. */
  configure(declarations: readonly QueueDeclaration[]): void {
    const wanted = new Set(declarations.map(({ code }) => code));
    for (const [code, entry] of this.entries) {
      if (entry.declaration.by !== 'configuration' || !entry.served || wanted.has(code)) continue;
      entry.served = false;
      if (entry.queue.durable) entry.queue.endMembers('the queue was taken out of the configuration');
      else this.forget(entry, 'the queue was taken out of the configuration');
    }
    for (const declaration of declarations) this.put(new Declaration(declaration, 'configuration'));
  }

  /**
   * Declares a queue at run time; it survives restarts. Again with the same storage: its options are changed.
   * @throws TrunklineError OPTION_INVALID, LIMIT_EXCEEDED, STORE_FULL, STORE_FAILED
   */
  async declare(declared: QueueDeclaration): Promise<Queue> {
    const existing = this.entries.get(declared.code);
    if (existing?.served && existing.declaration.by === 'configuration') {
      throw new TrunklineError('OPTION_INVALID', `queue ${declared.code} is declared in the configuration`);
    }
    const queue = this.put(new Declaration(declared, 'admin'));
    await this.committer.flushed();
    return queue;
  }

  private put(declaration: Declaration): Queue {
    const { code, options } = declaration;
    this.check(code, options);
    const known = this.entries.get(code);
    if (known !== undefined && known.queue.options.storage === options.storage) {
      const changed = !known.declaration.equals(declaration);
      known.declaration = declaration;
      known.served = true;
      if (changed) {
        known.queue.reconfigure(options);
        this.storeDeclaration(known);
      }
      return known.queue;
    }
    if (known?.served) this.checkStorage(known, options);
    if (known !== undefined) this.forget(known, 'the queue was declared anew');
    const entry = { queue: new Queue(this, this.nextId++, options), declaration, served: true };
    this.enter(entry);
    this.storeDeclaration(entry);
    return entry.queue;
  }

  private check(code: number, options: QueueOptions): void {
    if (options.storage === 'disk' && this.store === undefined) {
      throw new TrunklineError('OPTION_INVALID', `queue ${code} is on disk and no dataDirectory is configured`);
    }
    if (options.deadLetter === code) {
      throw new TrunklineError('OPTION_INVALID', `queue ${code} cannot be its own dead letter queue`);
    }
  }

  /** A queue in memory that the configuration declares needs no record. */
  private storeDeclaration({ queue, declaration }: QueueEntry): void {
    if (this.store === undefined || (!queue.durable && declaration.by === 'configuration')) return;
    this.committer.record(queueRecord(queue.id), declaration.encode(queue));
  }

  /** Deletes a queue that was declared at run time, with its messages. @throws TrunklineError as `declare` */
  async delete(code: number): Promise<boolean> {
    const entry = this.entries.get(code);
    if (entry === undefined || !entry.served) return false;
    if (entry.declaration.by === 'configuration') {
      throw new TrunklineError('OPTION_INVALID', `queue ${code} is declared in the configuration`);
    }
    this.forget(entry, 'the queue was deleted');
    await this.committer.flushed();
    return true;
  }

  private forget({ queue, declaration }: QueueEntry, reason: string): void {
    this.entries.delete(declaration.code);
    this.byQueue.delete(queue);
    const groups = [...queue.groups.keys()];
    queue.close(reason);
    if (this.store === undefined) return;
    const { id } = queue;
    this.committer.record(queueRecord(id), null);
    if (!queue.durable) return;
    for (const name of groups) this.committer.record(groupRecord(id, name), null);
    for (const name of queue.inlet.publishers.keys()) this.committer.publisherChanged(queue, undefined, name);
    this.committer.dropMessages(id);
  }

  /** Forgets a group and its position. @throws TrunklineError STORE_FULL, STORE_FAILED */
  async deleteGroup(queue: Queue, name: string): Promise<boolean> {
    if (!queue.deleteGroup(name)) return false;
    if (queue.durable) this.committer.record(groupRecord(queue.id, name), null);
    await this.committer.flushed();
    return true;
  }

  /** Stores what there is to store and lets the store go. Always resolves. */
  async close(): Promise<void> {
    await this.committer.settled();
    this.committer.close();
    for (const { queue } of this.entries.values()) queue.stopTimers();
    await this.store?.close();
  }
}
