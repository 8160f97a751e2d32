import { TrunklineError } from '@trunkline/proto';
import { Declaration } from './declaration.js';
import { decodeGroup, type GroupState } from './group-record.js';
import type { MessageFilter } from './options.js';
import { Publisher } from './publisher.js';
import { Queue, type QueueHost } from './queue.js';
import type { Damage, StoreContents, StoredQueue } from './store.js';

type Records = readonly (readonly [name: string, bytes: Uint8Array, key: string])[];

/** A queue as it comes back from a store. */
export interface Restored {
  readonly queue: Queue;
  readonly declaration: Declaration;
}

/** Brings back queues, their publishers and groups from what was found in a store. */
export class Restorer {
  /** No queue in the store, whole or not, has this id or a higher one. */
  nextId = 1;
  private readonly publishers = new Map<number, [string, Uint8Array, string][]>();
  private readonly groups = new Map<number, [string, Uint8Array, string][]>();

  constructor(
    private readonly host: QueueHost,
    private readonly contents: StoreContents,
    /** Hears of everything that is not there any more. */
    private readonly damaged: (damage: Damage) => void,
  ) {
    // by queue, once: looking through all records for each queue would take queues times records
    for (const [key, bytes] of contents.records) {
      const [kind, id] = key.split('/', 2);
      const queue = Number(id);
      if (id === undefined || !Number.isSafeInteger(queue)) continue;
      this.nextId = Math.max(this.nextId, queue + 1);
      const into = kind === 'publisher' ? this.publishers : kind === 'group' ? this.groups : undefined;
      if (into === undefined) continue;
      const found = into.get(queue) ?? [];
      found.push([key.slice(kind!.length + id.length + 2), bytes, key]);
      into.set(queue, found);
    }
    for (const { queue } of contents.queues) this.nextId = Math.max(this.nextId, queue + 1);
  }

  /** A record that cannot be read is told, and the others are not the worse for it. */
  decoded<T>(key: string, decode: () => T): T | undefined {
    try {
      return decode();
    } catch (error) {
      if (!(error instanceof TrunklineError)) throw error;
      this.damaged({ queue: undefined, first: 0, last: 0, message: `record ${key}: ${error.message}` });
      return undefined;
    }
  }

  restore(): Restored[] {
    const { records, queues, damages } = this.contents;
    const stored = new Map(queues.map((each) => [each.queue, each]));
    const broken = new Map<number, Damage>();
    for (const damage of damages) {
      if (damage.queue !== undefined && !stored.has(damage.queue)) broken.set(damage.queue, damage);
    }
    const restored: Restored[] = [];
    for (const [key, bytes] of records) {
      const id = Number(key.startsWith('queue/') ? key.slice('queue/'.length) : Number.NaN);
      if (!Number.isSafeInteger(id)) continue;
      const record = this.decoded(key, () => Declaration.decode(bytes));
      if (record === undefined) continue;
      const queue = new Queue(this.host, id, record.declaration.options);
      queue.restore(record.state, stored.get(id));
      this.fill(queue, stored.get(id), broken.get(id));
      stored.delete(id);
      restored.push({ queue, declaration: record.declaration });
    }
    for (const { queue, first, last } of stored.values()) {
      this.damaged({ queue, first, last, message: 'messages of a queue whose record is missing' });
    }
    return restored;
  }

  private fill(queue: Queue, stored: StoredQueue | undefined, damage: Damage | undefined): void {
    const publishers = this.read(this.publishers.get(queue.id), (bytes, id) => Publisher.decode(id, bytes));
    const groups = this.read(this.groups.get(queue.id), (bytes) => decodeGroup(bytes));
    if (stored === undefined && damage !== undefined) {
      queue.restoreDamage(endOf(damage, publishers.values(), groups.values()), damage.message);
    }
    for (const [id, publisher] of publishers) {
      publisher.forgetAbove(queue.last);
      queue.inlet.publishers.set(id, publisher);
    }
    for (const [name, state] of groups) {
      this.cutOff(queue, name, state);
      queue.putGroup(name, this.filter(state.filter), state).stored = true;
    }
    queue.groupsRestored();
  }

  private read<T>(records: Records | undefined, decode: (bytes: Uint8Array, name: string) => T): Map<string, T> {
    const read = new Map<string, T>();
    for (const [name, bytes, key] of records ?? []) {
      const value = this.decoded(key, () => decode(bytes, name));
      if (value !== undefined) read.set(name, value);
    }
    return read;
  }

  /**
   * A group may know of messages that are lost with the end of the queue: the next ones get their sequences, and are
   * neither done with nor delivered yet.
   */
  private cutOff({ id, last }: Queue, name: string, state: GroupState): void {
    const { acked, counts, delays } = state;
    const known = Math.max(state.position, acked.last ?? 0);
    if (known > last) {
      const message = `the group ${name} was done with message ${known}, and the queue ends at ${last}`;
      this.damaged({ queue: id, first: last + 1, last: known, message });
    }
    state.position = Math.min(state.position, last);
    state.reserved = Math.min(state.reserved, last);
    acked.remove(last + 1, Number.MAX_SAFE_INTEGER);
    for (const sequences of [counts, delays]) {
      for (const sequence of sequences.keys()) if (sequence > last) sequences.delete(sequence);
    }
  }

  private filter(text: string): MessageFilter | undefined {
    if (text === '') return undefined;
    try {
      return this.host.compile(text);
    } catch (error) {
      if (!(error instanceof TrunklineError)) throw error;
      this.host.log.error({ filter: text, error: error.message }, 'a stored filter does not compile any more');
      return { text, matches: () => false, broken: error };
    }
  }
}

/** The end of a queue with a damaged part: where the store does not know it, by what anybody was told of. */
function endOf({ last }: Damage, publishers: Iterable<Publisher>, groups: Iterable<GroupState>): number {
  let end = last === Number.MAX_SAFE_INTEGER ? 0 : last;
  for (const { lastSequence } of publishers) end = Math.max(end, lastSequence);
  for (const { position, reserved, acked } of groups) end = Math.max(end, position, reserved, acked.last ?? 0);
  return end;
}
