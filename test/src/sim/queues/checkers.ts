import type { Dispatcher } from '@trunkline/dispatcher';
import { bodyStart, Flag, isData, OFFSET, payload, readU32, readU53, Type } from '@trunkline/proto';
import { Consumer } from '../../../../dispatcher/dist/consumer.js';
import type { WireMessage } from '../checkers/index.js';
import { Violation, type World } from '../world.js';
import { DEAD, GROUPS, type GroupPlan, RING } from './scenario.js';
import type { StoreListener } from './watched-store.js';

/** A publish, by the number in its body. */
export interface Published {
  readonly id: number;
  readonly code: number;
  /** Groups that were there for certain before it was published. */
  readonly groups: readonly GroupPlan[];
  sequence: number | undefined;
}

/** What a group saw of one message. */
interface Seen {
  count: number;
  /** A consumer called `ack`. */
  handled: boolean;
  /** `ack` resolved. */
  acked: boolean;
}

export const nameOf = ({ code, name }: { code: number; name: string }) => `${code}/${name}`;

/** What publishers and consumers know, and what must hold of it (DESIGN §8). */
export class QueueCheckers implements StoreListener {
  readonly published = new Map<number, Published>();
  /** Groups of which a consumer heard that it is in. */
  readonly joined = new Set<GroupPlan>();
  confirmed = 0;
  acked = 0;
  delivered = 0;
  redelivered = 0;
  buried = 0;
  /** Milliseconds, by code. */
  readonly ackTimeouts = new Map<number, number>();
  private readonly places = new Map<string, number>();
  private readonly seen = new Map<string, Map<number, Seen>>();
  /** Where in the dead letter queue a message of a group lies. */
  private readonly graves = new Map<string, number>();
  private readonly held = new WeakMap<Consumer, Map<number, number>>();
  /** What was settled in this step of the dispatcher: what it sends goes out at its end, in whatever order it was said. */
  private readonly settledNow = new Set<string>();
  private readonly stored = new Map<string, number>();
  private readonly positions = new Map<string, number>();

  constructor(private readonly world: World) {}

  private check(holds: boolean, checker: string, what: () => string): void {
    if (!holds) this.world.fail(new Violation(checker, '§8', what()));
  }

  /** A dispatcher with an empty memory: a ring begins anew. */
  dispatcherStarted(): void {
    this.seen.delete(`${RING}/red`);
    this.positions.clear();
  }

  // ---- publishing ----

  publish(id: number, code: number): Published {
    const groups = [...this.joined].filter((group) => group.code === code && group.matches(id));
    const published = { id, code, groups, sequence: undefined };
    this.published.set(id, published);
    return published;
  }

  confirm(published: Published, sequence: number): void {
    this.confirmed++;
    published.sequence = sequence;
    this.stands(published.code, published.id, sequence);
  }

  /** A message has one place, whoever tells of it, and a place one message. */
  private stands(code: number, id: number, sequence: number): void {
    // a ring begins anew with each process; a dead letter has the id of a message that lies in several graves
    if (code === RING || code === DEAD) return;
    for (const [key, value] of [
      [`${code} id ${id}`, sequence],
      [`${code} sequence ${sequence}`, id],
    ] as const) {
      const known = this.places.get(key);
      this.places.set(key, value);
      this.check(known === undefined || known === value, 'stored once', () => `${key}: ${known} and ${value}`);
    }
  }

  // ---- what the dispatcher sends ----

  sent({ type, line, batch, at }: WireMessage, dispatcher: Dispatcher | undefined): void {
    if (!isData(type)) return;
    const consumer = dispatcher?.core.lines.get(line);
    if (!(consumer instanceof Consumer)) return;
    const sequence = readU53(batch, at + OFFSET.sequence);
    const count = readU32(batch, at + OFFSET.generation);
    const redelivered = (batch[at + OFFSET.flags]! & Flag.REDELIVERED) !== 0;
    const group = `${consumer.code}/${consumer.member.group.name}`;
    this.delivered++;
    if (redelivered) this.redelivered++;
    const known = this.seenOf(group).get(sequence);
    this.check(!known?.acked, 'acks', () => `${group}: ${sequence} was acknowledged and is delivered again`);
    this.check(count > (known?.count ?? 0), 'counts', () => `${group}: ${sequence} ${known?.count} and then ${count}`);
    this.check(redelivered === count > 1, 'counts', () => `${group}: ${sequence} ${count} marked ${redelivered}`);
    if (known === undefined) this.seenOf(group).set(sequence, { count, handled: false, acked: false });
    else known.count = count;
    this.hold(consumer, sequence);
  }

  private seenOf(group: string): Map<number, Seen> {
    let seen = this.seen.get(group);
    if (seen === undefined) {
      seen = new Map();
      this.seen.set(group, seen);
    }
    return seen;
  }

  private hold(consumer: Consumer, sequence: number): void {
    const held = this.heldBy(consumer);
    if (!this.settledNow.has(`${consumer.line} ${sequence}`)) held.set(sequence, this.world.now);
    const { window } = consumer.member;
    this.check(held.size <= window, 'window', () => `${held.size} messages out, the window is ${window}`);
  }

  /** What is out at a consumer by what went over the wire, and when it did; what has timed out is not. */
  private heldBy(consumer: Consumer): Map<number, number> {
    let held = this.held.get(consumer);
    if (held === undefined) {
      held = new Map();
      this.held.set(consumer, held);
    }
    // the queues' time is in whole milliseconds
    const since = this.world.now - this.ackTimeouts.get(consumer.code)! + 1;
    for (const [sequence, at] of held) if (at <= since) held.delete(sequence);
    return held;
  }

  /** About to reach the dispatcher. */
  received({ type, line, batch, at }: WireMessage, dispatcher: Dispatcher | undefined): void {
    if (type !== Type.ACK && type !== Type.NACK && type !== Type.EXTEND) return;
    const consumer = dispatcher?.core.lines.get(line);
    if (!(consumer instanceof Consumer)) return;
    const { ranges } = payload.settle.decode(batch.subarray(bodyStart(batch, at), at + readU32(batch, at)));
    const held = this.heldBy(consumer);
    for (let index = 0; index < ranges.length; index += 2) {
      for (let sequence = ranges[index]!; sequence <= ranges[index + 1]!; sequence++) {
        if (type !== Type.EXTEND) {
          held.delete(sequence);
          this.settledNow.add(`${line} ${sequence}`);
        } else if (held.has(sequence)) held.set(sequence, this.world.now);
      }
    }
  }

  // ---- consuming ----

  got(plan: GroupPlan, sequence: number, id: number, attrs: Readonly<Record<string, unknown>>): void {
    this.check(plan.matches(id), 'filter', () => `${nameOf(plan)} got ${id}`);
    this.stands(plan.code, id, sequence);
    if (plan.code !== DEAD) return;
    const grave = `${attrs.deadOrigin}/${attrs.deadGroup} ${attrs.deadSequence}`;
    const known = this.graves.get(grave);
    if (known === undefined) this.buried++;
    this.graves.set(grave, sequence);
    const two = () => `the dead letter ${grave} lies at ${known} and ${sequence}`;
    this.check(known === undefined || known === sequence, 'buried once', two);
  }

  handled(plan: GroupPlan, sequence: number): void {
    const seen = this.seenOf(nameOf(plan)).get(sequence);
    if (seen !== undefined) seen.handled = true;
  }

  ackStored(plan: GroupPlan, sequence: number): void {
    const seen = this.seenOf(nameOf(plan)).get(sequence);
    this.acked++;
    // the ring of an earlier process has no such message any more
    if (plan.code !== RING && seen !== undefined) seen.acked = true;
  }

  // ---- positions ----

  positionStored(key: string, position: number | undefined, opening: boolean): void {
    const before = this.stored.get(key) ?? 0;
    this.check(position !== undefined, 'positions', () => `${key} was deleted`);
    const now = position ?? 0;
    this.check(now >= before, 'positions', () => `${key}: ${before} was stored, ${opening ? 'opened' : 'then'} ${now}`);
    this.stored.set(key, Math.max(before, now));
  }

  dispatcherStep({ queues }: Dispatcher): void {
    this.settledNow.clear();
    for (const { queue } of queues.all()) {
      for (const group of queue.groups.values()) {
        const key = `${queue.id}/${group.name}`;
        const before = this.positions.get(key) ?? 0;
        const { position, next } = group;
        this.check(position >= before, 'positions', () => `${key}: ${before} and then ${position}`);
        this.check(position < next, 'positions', () => `${key}: ${position} is done with, ${next} is read next`);
        this.positions.set(key, position);
      }
      const { floor, last, assigned } = queue;
      this.check(floor <= last && last <= assigned, 'positions', () => `${queue.id}: ${floor} ${last} ${assigned}`);
    }
  }

  // ---- in the end ----

  /** Everything that was confirmed has reached the groups that were there. */
  drained(): void {
    for (const { id, code, sequence, groups } of this.published.values()) {
      if (sequence === undefined || code === RING) continue;
      for (const group of groups) {
        const name = nameOf(group);
        const seen = this.seenOf(name).get(sequence);
        const buried = this.graves.has(`${name} ${sequence}`);
        const what = () => `${name}: ${id}, stored as ${sequence}, was ${seen === undefined ? 'never sent' : 'sent'}`;
        this.check(seen?.handled === true || buried, 'never lost', () => `${what()} and is not done with`);
      }
    }
  }
}

export { GROUPS };
