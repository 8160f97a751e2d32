import { type Flushable, type Flusher, type Log, Timer, type Timers, TrunklineError } from '@trunkline/proto';
import type { Group, GroupCut } from './group.js';
import type { Batch, Budget } from './inlet.js';
import { MIB } from './options.js';
import type { Publisher, PublishRefusal } from './publisher.js';
import type { Queue } from './queue.js';
import { RecordWriter } from './record-bytes.js';
import type { Commit, Store } from './store.js';

/** Most that goes into one commit. */
const COMMIT_BYTES = MIB;
const COMMIT_MESSAGES = 2048;
const MAX_UNDER_WAY = 2;
/** A store that failed is tried again after this, ms. */
export const STORE_AGAIN = 500;
/** Records that nobody waits for are stored after this where no message comes that they can go with, ms. */
const SOON = 50;
/** The queues' time is stored so often, ms: after a restart it does not go back by more. */
const TIME_STEP = 1000;
export const TIME_RECORD = 'time';

export function queueRecord(id: number): string {
  return `queue/${id}`;
}

export function groupRecord(id: number, name: string): string {
  return `group/${id}/${name}`;
}

export function publisherRecord(id: number, publisher: string): string {
  return `publisher/${id}/${publisher}`;
}

export interface CommitterOptions {
  readonly store: Store | undefined;
  readonly flusher: Flusher;
  readonly timers: Timers;
  readonly log: Log;
  time(): number;
  /** The record of a queue as it is now. */
  encodeQueue(queue: Queue): Uint8Array;
}

/** Queues of which a commit forgets something. */
interface ChangedQueues {
  readonly trimmed: readonly Queue[];
  /** All that was stored of them. */
  readonly emptied: readonly Queue[];
}

/** One commit on its way, and who is told what became of it. */
interface UnderWay {
  readonly batches: readonly Batch[];
  readonly groups: ReadonlyMap<Group, GroupCut>;
  readonly records: ReadonlyMap<string, Uint8Array | null>;
  readonly changed: ChangedQueues;
  readonly drops: readonly number[];
  readonly done: readonly ((error?: TrunklineError) => void)[];
}

/**
 * Group commit: everything that came while commits were under way goes into the next one. Queues in memory are served
 * at the end of the same step.
 */
export class Committer implements Flushable {
  /** Why publishes are refused now: the store cannot take them. */
  refusal: PublishRefusal | undefined;
  commits = 0;
  private readonly queues = new Set<Queue>();
  private readonly groups = new Set<Group>();
  private readonly publishers = new Map<string, Publisher>();
  private records = new Map<string, Uint8Array | null>();
  /** Records of commits that failed, the newest of each: stored again where nothing newer waits. */
  private readonly undone = new Map<string, Uint8Array | null>();
  private drops: number[] = [];
  private done: ((error?: TrunklineError) => void)[] = [];
  private urgent = false;
  private scheduled = false;
  private underWay = 0;
  /** A commit failed: nothing new begins before all that were under way have. */
  private failed: TrunklineError | undefined;
  /** Not even records can be written. */
  private blocked = false;
  /** The failure that was logged last, until the store takes messages again. */
  private told: string | undefined;
  private closed = false;
  private lastTime = 0;
  private readonly retry = new Timer({ onTimer: () => this.again() });
  private readonly soon = new Timer({ onTimer: () => this.schedule() });
  private idle: (() => void)[] = [];
  private readonly due: Queue[] = [];

  constructor(private readonly options: CommitterOptions) {}

  queueChanged(queue: Queue, urgent: boolean): void {
    this.queues.add(queue);
    if (urgent) this.schedule();
    else this.scheduleSoon();
  }

  groupChanged(group: Group, urgent: boolean): void {
    this.groups.add(group);
    if (urgent) this.schedule();
    else this.scheduleSoon();
  }

  publisherChanged(queue: Queue, publisher: Publisher | undefined, id: string): void {
    const key = publisherRecord(queue.id, id);
    if (publisher !== undefined) this.publishers.set(key, publisher);
    else {
      this.publishers.delete(key);
      this.record(key, null);
    }
  }

  /** Writes a record with the next commit, or with `null` deletes it. */
  record(key: string, value: Uint8Array | null): void {
    this.records.set(key, value);
    this.schedule();
  }

  /** Forgets all messages of a queue that is gone. */
  dropMessages(queue: number): void {
    this.drops.push(queue);
    this.schedule();
  }

  /** Resolves when everything up to now is stored. @throws TrunklineError STORE_FULL, STORE_FAILED */
  flushed(): Promise<void> {
    if (this.options.store === undefined) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.done.push((error) => (error === undefined ? resolve() : reject(error)));
      this.schedule();
    });
  }

  /** Resolves when nothing is under way or waits to be stored, or cannot be. */
  settled(): Promise<void> {
    if (this.groups.size + this.queues.size > 0) this.schedule();
    if (!this.scheduled && this.underWay === 0 && !this.hasWork()) return Promise.resolve();
    if (this.blocked) return Promise.resolve();
    return new Promise((resolve) => this.idle.push(resolve));
  }

  private schedule(): void {
    this.urgent = true;
    if (this.scheduled || this.closed) return;
    this.scheduled = true;
    this.options.flusher.add(this);
  }

  private scheduleSoon(): void {
    if (!this.urgent && !this.soon.active && !this.closed) this.options.timers.start(this.soon, SOON);
  }

  flush(): void {
    this.scheduled = false;
    for (const queue of this.queues) if (!queue.durable) this.storeInMemory(queue);
    while (this.hasWork() && this.underWay < MAX_UNDER_WAY && this.failed === undefined && !this.blocked) this.commit();
    if (this.blocked || (this.underWay === 0 && !this.hasWork())) for (const resolve of this.idle.splice(0)) resolve();
  }

  private storeInMemory(queue: Queue): void {
    this.queues.delete(queue);
    for (;;) {
      const batch = queue.inlet.cut({ bytes: COMMIT_BYTES, messages: COMMIT_MESSAGES });
      if (batch === undefined) break;
      queue.stored(batch);
    }
  }

  private hasWork(): boolean {
    if (this.options.store === undefined) return false;
    return (
      this.urgent && this.queues.size + this.groups.size + this.records.size + this.drops.length + this.done.length > 0
    );
  }

  private commit(): void {
    const { store } = this.options;
    if (store === undefined) return;
    this.urgent = false;
    const budget = { bytes: COMMIT_BYTES, messages: COMMIT_MESSAGES };
    const batches = this.cutQueues(budget);
    const changed = this.cutRecords();
    const groups = this.cutGroups();
    const { records, drops, done } = this;
    this.records = new Map();
    this.drops = [];
    this.done = [];
    const put = new Map(records);
    for (const [key, publisher] of this.publishers) put.set(key, publisher.encode());
    this.publishers.clear();
    for (const [group, { record }] of groups) put.set(groupRecord(group.queue.id, group.name), record);
    this.putTime(put);
    const commit: Commit = {
      // the store may hand the bytes on for good, and readers here still need them
      append: batches.map(({ queue, chunk: { first, last, bytes } }) => ({
        queue: queue.id,
        first,
        last,
        bytes: bytes.slice(),
      })),
      put,
      trim: changed.trimmed.map(({ id, floor }) => ({ queue: id, upTo: floor })),
      drop: [...drops, ...changed.emptied.map(({ id }) => id)],
    };
    const underWay = { batches, groups, records, changed, drops, done };
    this.underWay++;
    this.commits++;
    store.commit(commit).then(
      () => this.succeeded(underWay),
      (error: unknown) => this.failedWith(underWay, error),
    );
  }

  private cutQueues(budget: Budget): Batch[] {
    const batches: Batch[] = [];
    const more: Queue[] = [];
    for (const queue of this.queues) {
      if (!queue.durable) continue;
      if (budget.bytes <= 0 || budget.messages <= 0) break;
      this.queues.delete(queue);
      // what a commit forgets of a queue, it forgets after it has stored something
      const batch = queue.dropDue ? undefined : queue.inlet.cut(budget);
      if (queue.inlet.hasPending) more.push(queue);
      if (queue.recordDue) this.due.push(queue);
      if (batch === undefined) continue;
      batches.push(batch);
      // what this commit stores may be delivered as soon as it has, if the groups' records say so
      for (const group of queue.groups.values()) if (group.members.length > 0) this.groups.add(group);
    }
    // behind the others, so that none of them waits for ever
    for (const queue of more) this.queues.add(queue);
    if (this.queues.size > 0) this.urgent = true;
    return batches;
  }

  /** Records of queues that changed; returns those of which something is forgotten. */
  private cutRecords(): ChangedQueues {
    const trimmed: Queue[] = [];
    const emptied: Queue[] = [];
    for (const queue of this.due.splice(0)) {
      if (queue.closed || !queue.recordDue) continue;
      queue.recordDue = false;
      this.records.set(queueRecord(queue.id), this.options.encodeQueue(queue));
      if (queue.dropDue) emptied.push(queue);
      else if (queue.trimDue) trimmed.push(queue);
      queue.dropDue = false;
      queue.trimDue = false;
    }
    return { trimmed, emptied };
  }

  private cutGroups(): Map<Group, GroupCut> {
    const cuts = new Map<Group, GroupCut>();
    for (const group of this.groups) if (!group.closed) cuts.set(group, group.cut());
    this.groups.clear();
    return cuts;
  }

  private putTime(put: Map<string, Uint8Array | null>): void {
    const time = this.options.time();
    if (time - this.lastTime < TIME_STEP) return;
    this.lastTime = time;
    put.set(TIME_RECORD, new RecordWriter().integer(Math.floor(time)).finish());
  }

  private succeeded({ batches, groups, done }: UnderWay): void {
    this.underWay--;
    if (batches.length > 0) this.tookMessages();
    // groups first: otherwise they would see messages that they may not deliver yet, and ask for another commit
    for (const cut of groups.values()) cut.flushed();
    for (const batch of batches) batch.queue.stored(batch);
    for (const tell of done) tell();
    this.ended();
  }

  private tookMessages(): void {
    this.refusal = undefined;
    if (this.told !== undefined) this.options.log.info({}, 'the store takes messages again');
    this.told = undefined;
  }

  private failedWith(underWay: UnderWay, cause: unknown): void {
    const { batches, groups, records, changed, drops, done } = underWay;
    this.underWay--;
    const error =
      cause instanceof TrunklineError ? cause : new TrunklineError('STORE_FAILED', String(cause), { cause });
    this.failed ??= error;
    if (this.told !== error.code) {
      this.told = error.code;
      this.options.log.error({ code: error.code, error: error.message }, 'the store takes nothing');
    }
    const refusal = refusalOf(error);
    this.refusal = refusal;
    for (const batch of [...batches].reverse()) batch.queue.failed(batch, refusal);
    for (const [group, cut] of groups) {
      cut.failed();
      if (!group.closed) this.groups.add(group);
    }
    for (const [key, value] of records) this.undone.set(key, value);
    for (const queue of changed.trimmed) queue.trimDue = true;
    for (const queue of changed.emptied) queue.dropDue = true;
    for (const queue of [...changed.trimmed, ...changed.emptied]) {
      queue.recordDue = true;
      this.queues.add(queue);
    }
    this.drops.unshift(...drops);
    this.urgent = true;
    for (const tell of done) tell(error);
    // a commit that had nothing but records: there is not even room for them
    if (batches.length === 0) this.blocked = true;
    this.ended();
  }

  private ended(): void {
    if (this.failed !== undefined && this.underWay === 0) {
      const { refusal } = this;
      if (this.failed.code !== 'STORE_FULL') this.blocked = true;
      this.failed = undefined;
      this.records = new Map([...this.undone, ...this.records]);
      this.undone.clear();
      // told now, and not when they time out
      if (refusal !== undefined) for (const queue of this.queues) if (queue.durable) queue.inlet.refuse(refusal);
      if (!this.closed) this.options.timers.start(this.retry, STORE_AGAIN);
    }
    if (!this.scheduled && !this.closed) {
      this.scheduled = true;
      this.options.flusher.add(this);
    }
  }

  /** Publishes are let through again: the first ones tell whether the store takes them. */
  private again(): void {
    this.refusal = undefined;
    this.blocked = false;
    this.schedule();
  }

  close(): void {
    this.options.timers.stop(this.retry);
    this.options.timers.stop(this.soon);
    this.closed = true;
    this.blocked = true;
  }
}

function refusalOf(error: TrunklineError): PublishRefusal {
  const code = error.code === 'STORE_FULL' ? 'STORE_FULL' : 'STORE_FAILED';
  return { code, message: error.message, retryable: true };
}
