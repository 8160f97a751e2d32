import { DataMessage, OFFSET, readU32, readU53, TrunklineError } from '@trunkline/proto';
import type { Dispatcher } from '../dispatcher.js';
import type { Group, Queue, QueueEntry } from '../queues/index.js';
import { storedAt } from '../queues/stored-message.js';

type Fields = Readonly<Record<string, unknown>>;
type Action = (dispatcher: Dispatcher, fields: Fields) => Promise<object>;

const maxCode = 0xffff_ffff;
/** Most messages of one `peek`. */
const MAX_PEEK = 1000;
/** Most bytes of bodies in one answer of `peek`. */
const PEEK_BYTES = 1024 * 1024;
/** So much is shown of a body that is longer. */
const LONG_BYTES = 1024;

/** What can be done to queues, by the name in `do`. */
export const queueActions: Readonly<Record<string, Action>> = {
  async declareQueue({ queues, registry, readQueueOptions }, fields) {
    const code = integer(fields, 'code', 1, maxCode);
    const service = registry.service(code);
    if (service !== undefined && service.definition.from === service.definition.to) {
      throw new TrunklineError('OPTION_INVALID', `code ${code} is a live service`);
    }
    const { name = String(code) } = fields;
    if (typeof name !== 'string' || name.length > 128) invalid('name must be a text of at most 128 characters');
    const options = readQueueOptions(fields.options ?? {});
    const queue = await queues.declare({ code, name: name as string, options });
    return { code, id: queue.id };
  },

  async deleteQueue({ queues }, fields) {
    return { deleted: await queues.delete(integer(fields, 'code', 1, maxCode)) };
  },

  async purge(dispatcher, fields) {
    const purged = queueOf(dispatcher, fields).purge();
    await dispatcher.queues.committer.flushed();
    return { purged };
  },

  async remove(dispatcher, fields) {
    const sequence = integer(fields, 'sequence', 1, Number.MAX_SAFE_INTEGER);
    const removed = queueOf(dispatcher, fields).remove(sequence);
    await dispatcher.queues.committer.flushed();
    return { removed };
  },

  async redeliver(dispatcher, fields) {
    return { redelivered: groupOf(dispatcher, fields).redeliver() };
  },

  async deleteGroup(dispatcher, fields) {
    const { queue, name } = groupOf(dispatcher, fields);
    return { deleted: await dispatcher.queues.deleteGroup(queue, name) };
  },

  async peek(dispatcher, fields) {
    const limit = fields.limit === undefined ? 10 : integer(fields, 'limit', 1, MAX_PEEK);
    const after = fields.after === undefined ? 0 : integer(fields, 'after', 0, Number.MAX_SAFE_INTEGER);
    return { items: await peek(queueOf(dispatcher, fields), after, limit) };
  },
};

function invalid(message: string): never {
  throw new TrunklineError('PARAMS_INVALID', message);
}

function integer(fields: Fields, name: string, least: number, most: number): number {
  const value = fields[name];
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  return invalid(`${name} must be an integer ${least}..${most}`);
}

function queueOf({ queues }: Dispatcher, fields: Fields): Queue {
  const code = integer(fields, 'code', 1, maxCode);
  const queue = queues.find(code);
  if (queue === undefined) throw new TrunklineError('UNKNOWN_SERVICE', `no queue has the code ${code}`);
  return queue;
}

function groupOf(dispatcher: Dispatcher, fields: Fields): Group {
  const queue = queueOf(dispatcher, fields);
  const group = typeof fields.group === 'string' ? queue.groups.get(fields.group) : undefined;
  return group ?? invalid(`group must be one of: ${[...queue.groups.keys()].join(', ') || 'there is none'}`);
}

// ---- what is seen ----

export async function queueView({ queue, declaration }: QueueEntry): Promise<object> {
  const { code, name, by, options } = declaration;
  const { id, floor, last, depth, bytes, published, dropped } = queue;
  const oldest = await queue.chunks.oldest().catch(() => undefined);
  return {
    code,
    name,
    id,
    declaredBy: by,
    storage: options.storage,
    messages: depth,
    bytes,
    first: floor + 1,
    last,
    oldestAgeMs: oldest === undefined ? 0 : Math.max(0, queue.time() - oldest),
    published,
    dropped,
    groups: [...queue.groups.values()].map(groupView),
    privateConsumers: queue.privates.size,
    options,
  };
}

function groupView(group: Group): object {
  const { name, position, waitingCount, outstanding, members, filter, redelivered, deadLettered, expired } = group;
  return {
    name,
    position,
    waiting: waitingCount,
    outstanding,
    online: members.length > 0,
    members: members.map(({ window, held, delivered, acked }) => ({
      window,
      outstanding: held.size,
      delivered,
      acked,
    })),
    filter: filter?.text ?? '',
    redelivered,
    deadLettered,
    expired,
  };
}

async function peek(queue: Queue, after: number, limit: number): Promise<object[]> {
  const items: object[] = [];
  let bytes = 0;
  for (let next = Math.max(after, queue.floor) + 1; next <= queue.last && items.length < limit; ) {
    const chunk = await queue.chunks.load(next);
    if (chunk === undefined) break;
    for (
      let at = chunk.offsetOf(next);
      at < chunk.bytes.length && items.length < limit;
      at += readU32(chunk.bytes, at)
    ) {
      next = readU53(chunk.bytes, at + OFFSET.sequence) + 1;
      if (queue.removed.has(next - 1)) continue;
      bytes += readU32(chunk.bytes, at);
      if (bytes > PEEK_BYTES && items.length > 0) return items;
      items.push(messageView(queue, chunk.bytes, at));
    }
  }
  return items;
}

function messageView(queue: Queue, bytes: Uint8Array, at: number): object {
  const message = new DataMessage(bytes, at);
  const ageMs = Math.max(0, queue.time() - storedAt(bytes, at));
  const head = { sequence: message.sequence, ageMs };
  try {
    const { tag, key, attrs, ttlMs, delayMs } = message.meta;
    return { ...head, tag, key, attrs: plain(attrs), ttlMs, delayMs, ...bodyView(message) };
  } catch (error) {
    return { ...head, unreadable: String(error) };
  }
}

/**
 * JSON as it is, other text as `text`, anything else as hex; of a body that is too long for an answer its `size` and how
 * it begins. JSON with integers that a double may not hold is text, too: nobody gets other digits.
 */
function bodyView(message: DataMessage): object {
  const { body } = message;
  if (body.length > PEEK_BYTES) return { size: body.length, hex: hex(body.subarray(0, LONG_BYTES)) };
  try {
    const text = message.text();
    return message.isJson && !/\d{16}/.test(text) ? { body: JSON.parse(text) } : { text };
  } catch {
    return { hex: hex(body) };
  }
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function plain(attrs: DataMessage['attrs']): object {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(attrs)) {
    shown[name] = typeof value === 'bigint' ? value.toString() : value instanceof Uint8Array ? [...value] : value;
  }
  return shown;
}
