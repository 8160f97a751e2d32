import {
  bodyStart,
  isReadableMeta,
  metaStart,
  OFFSET,
  payload,
  readU32,
  readU53,
  sameBytes,
  singleMessage,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { Confirmations, PublishHold } from './confirmations.js';
import { Consumer } from './consumer.js';
import type { Core } from './core.js';
import { readInput } from './message-input.js';
import type { Peer } from './peer.js';
import type { GroupStart, MessageFilter, PublishRefusal, Queue, Queues, Range } from './queues/index.js';

/** Most messages a consumer holds where it says nothing else, and at all. */
export const DEFAULT_WINDOW = 256;
export const MAX_WINDOW = 65_536;
const MAX_GROUP_NAME = 255;
const MAX_TIME = 2 ** 31 - 1;
/** Codes and publishers of one session whose confirmations are put together. */
const MAX_CONFIRMATIONS = 1024;
/** Most ranges of one SETTLED. */
const MAX_FAILED = 1024;
/** A call whose messages are not known. */
const NONE: readonly Range[] = [{ first: 0, last: 0 }];

/** What sessions say to queues: PUBLISH, ACK, NACK, EXTEND, and REQUEST of consumers. */
export class QueueMessages {
  private readonly publishers = new WeakMap<Peer, Map<string, Confirmations>>();

  constructor(
    private readonly core: Core,
    private readonly queues: Queues,
    private readonly maxSubscriptions: number,
  ) {}

  /** Whether a code is a queue's. */
  has(code: number): boolean {
    return this.queues.find(code) !== undefined;
  }

  // ---- publishing ----

  publishes(peer: Peer, batch: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const code = readU32(batch, at + OFFSET.code);
      const number = readU53(batch, at + OFFSET.sequence);
      let next = at + readU32(batch, at);
      let count = 1;
      if (!isReadable(batch, at)) {
        this.refuse(peer, code, batch, at, number, UNREADABLE);
        at = next;
        continue;
      }
      while (
        next < end &&
        readU32(batch, next + OFFSET.code) === code &&
        readU53(batch, next + OFFSET.sequence) === number + count &&
        isReadable(batch, next)
      ) {
        next += readU32(batch, next);
        count++;
      }
      this.publish(peer, code, batch, at, next, count, number);
      at = next;
    }
  }

  private publish(
    peer: Peer,
    code: number,
    batch: Uint8Array,
    start: number,
    end: number,
    count: number,
    number: number,
  ): void {
    const line = readU32(batch, start + OFFSET.line);
    const confirmations = this.confirmations(peer, code, line);
    const hold = new PublishHold(confirmations, peer.session, end - start, count);
    const queue = this.queues.find(code);
    if (queue === undefined || number === 0) {
      hold.refused(number, count, queue === undefined ? noQueue(code) : NO_NUMBER);
      return;
    }
    const publisher = queue.inlet.publisher(`${hex(peer.session.peer.instance)}-${line}`);
    queue.inlet.publish(publisher, batch, start, end, count, number, hold);
  }

  private refuse(
    peer: Peer,
    code: number,
    batch: Uint8Array,
    at: number,
    number: number,
    refusal: PublishRefusal,
  ): void {
    const confirmations = this.confirmations(peer, code, readU32(batch, at + OFFSET.line));
    new PublishHold(confirmations, peer.session, readU32(batch, at), 1).refused(number, 1, refusal);
  }

  private confirmations(peer: Peer, code: number, line: number): Confirmations {
    let known = this.publishers.get(peer);
    if (known === undefined) {
      known = new Map();
      this.publishers.set(peer, known);
    }
    const key = `${code}-${line}`;
    let confirmations = known.get(key);
    if (confirmations === undefined) {
      // those that are needed still are held by what they wait for
      if (known.size >= MAX_CONFIRMATIONS) known.clear();
      confirmations = new Confirmations(peer, code, line);
      known.set(key, confirmations);
    }
    return confirmations;
  }

  // ---- consuming ----

  /** Answered exactly once: REFUSED now, ACCEPTED when a restart would find the group. */
  request(peer: Peer, batch: Uint8Array, at: number): void {
    const fields = peer.session.decode(payload.request, batch, at);
    if (fields === undefined) return;
    this.core.counters.requests++;
    const code = readU32(batch, at + OFFSET.code);
    try {
      this.consume(peer, code, fields);
    } catch (error) {
      if (!(error instanceof TrunklineError)) throw error;
      const { message, retryable, position } = error;
      peer.refuse(code, fields.request, { code: error.code, message, retryable, position });
    }
  }

  private consume(peer: Peer, code: number, fields: payload.Request): void {
    const { request, group, filter } = fields;
    const known = peer.consumers.get(request);
    if (request === 0 || peer.requests.has(request) || (known !== undefined && known.code !== code)) {
      throw new TrunklineError('REQUEST_INVALID', `request id ${request} is in use, or 0`);
    }
    if (known !== undefined) {
      if (known.accepted) this.accept(known);
      return;
    }
    if (peer.requests.size + peer.consumers.size >= this.maxSubscriptions || this.core.lines.full) {
      const message = `the session has ${this.maxSubscriptions} subscriptions`;
      throw new TrunklineError('LIMIT_EXCEEDED', message, { retryable: true });
    }
    if (group.length > MAX_GROUP_NAME) {
      throw new TrunklineError('REQUEST_INVALID', `the name of a group has at most ${MAX_GROUP_NAME} characters`);
    }
    const window = Math.min(MAX_WINDOW, fields.window || DEFAULT_WINDOW);
    const consumer = new Consumer(peer, code, request);
    try {
      const queue = this.queues.find(code)!;
      consumer.member = queue.join(group, filter, this.startOf(fields.start, queue), consumer, window);
    } catch (error) {
      this.core.lines.release(consumer.line);
      throw error;
    }
    peer.consumers.set(request, consumer);
    const { group: joined } = consumer.member;
    if (joined.stored) this.begin(consumer);
    else {
      // whoever was accepted misses nothing from then on, so the group has to survive a kill
      joined.whenStored(() => {
        if (peer.consumers.get(request) === consumer) this.begin(consumer);
      });
    }
  }

  private begin(consumer: Consumer): void {
    this.accept(consumer);
    consumer.begin();
  }

  private accept({ peer, code, line, request, member }: Consumer): void {
    this.core.counters.accepted++;
    const { queue, position } = member.group;
    const accepted = payload.accepted.encode({ request, status: 'live', epoch: this.epochOf(queue) });
    peer.session.sendEncoded(singleMessage({ type: Type.ACCEPTED, code, line, sequence: position }, accepted));
  }

  /** Names the history that sequences belong to: a queue in memory begins anew with the process. */
  private epochOf({ durable, id }: Queue): Uint8Array {
    const epoch = this.core.epoch(id);
    return durable ? epoch.subarray(8) : epoch;
  }

  private startOf({ from, sequence, epoch }: payload.Start, queue: Queue): GroupStart {
    if (from === payload.StartFrom.LIVE) return 'latest';
    if (from !== payload.StartFrom.AFTER) return 'earliest';
    // who asks for a place in another history has seen nothing of this one
    const other = epoch.length > 0 && (sequence > queue.last || !sameBytes(epoch, this.epochOf(queue)));
    return other ? 'earliest' : { after: sequence };
  }

  // ---- acknowledging ----

  /** ACK, NACK or EXTEND. What is wrong with one of them concerns nothing else. */
  settle(peer: Peer, type: number, batch: Uint8Array, at: number): void {
    const fields = peer.session.decode(payload.settle, batch, at);
    if (fields === undefined) return;
    const line = readU32(batch, at + OFFSET.line);
    const code = readU32(batch, at + OFFSET.code);
    const { call, delayMs, reason } = fields;
    const answer = (failed: readonly Range[], why = 'NOT_HELD', message = '') => {
      if (call === 0 && failed.length === 0) return;
      const error = failed.length === 0 ? {} : { code: why, message };
      // of very many only from where to where: those between may come again, which is what it means
      const told = failed.length > MAX_FAILED ? [hull(failed)] : failed;
      const pairs = told.flatMap(({ first, last }) => [first, last]);
      const bytes = payload.settled.encode({ call, failed: pairs, ...error });
      peer.session.send({ type: Type.SETTLED, code, line }, bytes);
    };
    const ranges = rangesOf(fields.ranges);
    const owner = this.core.lines.get(line);
    if (!(owner instanceof Consumer) || owner.peer !== peer || owner.line !== line) {
      answer(ranges ?? NONE, 'NOT_SUBSCRIBED', 'there is no such consumer');
    } else if (ranges === undefined) {
      answer(NONE, 'REQUEST_INVALID', 'ranges are pairs of a first and a last sequence');
    } else if (delayMs > MAX_TIME) {
      answer(ranges, 'OPTION_INVALID', `a time is at most ${MAX_TIME} ms`);
    } else if (type === Type.ACK) {
      // one that nobody waits for is not worth a commit of its own
      if (call === 0) answer(owner.member.ackSoon(ranges));
      else owner.member.ack(ranges, answer);
    } else if (type === Type.NACK) {
      answer(owner.member.nack(ranges, delayMs, reason));
    } else {
      answer(owner.member.extend(ranges, delayMs));
    }
  }

  /** The session has credit again. */
  wake(peer: Peer): void {
    for (const consumer of peer.consumers.values()) consumer.member.wake();
  }

  /** Messages that sessions hold unacknowledged. */
  get outstanding(): number {
    let sum = 0;
    for (const { queue } of this.queues.all()) for (const group of queue.allGroups()) sum += group.outstanding;
    return sum;
  }
}

/** A group's filter over the dispatcher's filter language. @throws TrunklineError FILTER_INVALID */
export function compileFor(core: Core, text: string): MessageFilter {
  const filter = core.filters.acquire(text);
  // held by the group alone: it needs no place among the filters that lanes share
  core.filters.release(filter);
  return {
    text: filter.text,
    matches: (bytes, at) => {
      const input = readInput(bytes, at);
      if (input === undefined) core.counters.filterErrors++;
      return input !== undefined && filter.matches(input);
    },
  };
}

function hull(ranges: readonly Range[]): Range {
  return ranges.reduce((all, { first, last }) => ({
    first: Math.min(all.first, first),
    last: Math.max(all.last, last),
  }));
}

function rangesOf(pairs: readonly number[]): Range[] | undefined {
  const ranges: Range[] = [];
  if (pairs.length % 2 !== 0) return undefined;
  for (let index = 0; index < pairs.length; index += 2) {
    const first = pairs[index]!;
    const last = pairs[index + 1]!;
    if (first > last) return undefined;
    ranges.push({ first, last });
  }
  return ranges;
}

function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

function noQueue(code: number): PublishRefusal {
  return { code: 'UNKNOWN_SERVICE', message: `no queue has the code ${code}`, retryable: false };
}
/** It would come to every consumer again and again (F50). */
function isReadable(batch: Uint8Array, at: number): boolean {
  return isReadableMeta(batch, metaStart(batch, at), bodyStart(batch, at));
}
const UNREADABLE: PublishRefusal = { code: 'META_INVALID', message: 'the meta cannot be decoded', retryable: false };
const NO_NUMBER: PublishRefusal = {
  code: 'REQUEST_INVALID',
  message: 'publish numbers begin with 1',
  retryable: false,
};
