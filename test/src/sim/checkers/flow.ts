import type { Dispatcher } from '@trunkline/dispatcher';
import type { Session } from '@trunkline/proto';
import type { Lane } from '../../../../dispatcher/dist/lane.js';
import type { Outbox } from '../../../../dispatcher/dist/outbox.js';
import type { Wire } from '../network.js';
import { limits } from '../scenario.js';
import type { SimProcess } from '../world.js';
import { Checker, peersOf } from './checker.js';

/** Outboxes stay within their bound, and all credit comes back. */
export class Flow extends Checker {
  readonly name = 'flow';
  readonly rules = 'Flow';
  /** Outboxes that may hold what a subscriber with overflow `block` has not taken. */
  private readonly blocking = new WeakSet<Outbox>();

  override dispatcherStep(dispatcher: Dispatcher): void {
    const { outboxBytes, receiveWindow } = dispatcher.configuration.session;
    // `block` keeps what providers may have sent at most, and a status or an end is always taken
    const most = 2 * outboxBytes + receiveWindow * this.sim.members.length + 70_000;
    for (const { outbox, name, session, requests } of dispatcher.peers.values()) {
      this.check(outbox.bytes >= 0 && outbox.bytes <= most, () => `outbox of ${name}: ${outbox.bytes} bytes`);
      this.check(outbox.waiting || outbox.bytes === 0, () => `outbox of ${name}: empty with ${outbox.bytes} bytes`);
      const stuck = outbox.waiting && session.credit > 0 && session.state === 'open';
      if ([...requests.values()].some(({ overflow }) => overflow === 'block')) this.blocking.add(outbox);
      // what a stream that has ended left there has to be taken first
      else if (!outbox.waiting) this.blocking.delete(outbox);
      const blocking = this.blocking.has(outbox);
      const live = outbox.bytes - outbox.told - outbox.kept;
      const bounded = blocking || live <= outboxBytes;
      this.check(bounded, () => `outbox of ${name}: ${live} bytes of responses, at most ${outboxBytes}`);
      this.check(!stuck, () => `outbox of ${name}: waits with credit ${session.credit}`);
    }
  }

  override quiet(dispatcher: Dispatcher): void {
    for (const { outbox, name, session } of dispatcher.peers.values()) {
      this.check(!outbox.waiting, () => `outbox of ${name} still waits`);
      const member = this.sim.members.find((each) => each.name === name || each.plan.address === session.link.label);
      this.returned(name, session, member?.plan.receiveWindow ?? 0);
    }
    for (const { name, connection } of this.sim.members) {
      if (connection?.session)
        this.returned(`dispatcher for ${name}`, connection.session, dispatcher.configuration.session.receiveWindow);
    }
  }

  /** Credit is granted in steps of a quarter of the window. */
  private returned(name: string, session: Session, window: number): void {
    const missing = window - session.credit;
    this.check(missing < window / 4 + 1, () => `${name} keeps ${missing} bytes of ${window} of the credit`);
  }
}

/** A session of which a batch was lost or doubled ends soon: with a heartbeat that tells the count. */
export class Damage extends Checker {
  readonly name = 'damage';
  readonly rules = '11';

  override damaged(wire: Wire, toAcceptor: boolean): void {
    const { world } = this.sim;
    const sender = toAcceptor ? wire.dialler : wire.acceptor;
    const receiver = toAcceptor ? wire.acceptor : wire.dialler;
    const session = this.sessionAt(wire, receiver);
    // a session that is not open yet does not count: the batch was of the one before it
    if (session?.state !== 'open') return;
    let waited = 0;
    const look = () => {
      if (!wire.open || session.state === 'closed' || !sender.alive || !receiver.alive) return;
      // a process or a network that stands still shows nothing
      waited += 100;
      if (sender.paused || receiver.paused) waited = 0;
      if (waited > 2 * limits.heartbeat! + 6000) {
        world.fail(this.violation(`session of ${sender.name} goes on after a batch was lost or doubled`));
        return;
      }
      world.later(100, look);
    };
    world.later(100, look);
  }

  private violation(what: string): unknown {
    try {
      this.broken(what);
    } catch (error) {
      return error;
    }
  }

  private sessionAt(wire: Wire, receiver: SimProcess): Session | undefined {
    if (receiver === this.sim.dispatcherProcess) {
      const link = receiver === wire.acceptor ? wire.accepted : wire.dialled;
      return peersOf(this.sim.dispatcher!).find(({ session }) => session.link === link)?.session;
    }
    return this.sim.members.find(({ process }) => process === receiver)?.connection?.session;
  }
}

/** Tables, timers and counts agree at any time, and all is gone when everybody is. */
export class NothingLeft extends Checker {
  readonly name = 'nothing left';
  readonly rules = '12, 13';

  override dispatcherLook(dispatcher: Dispatcher): void {
    for (const { session } of dispatcher.peers.values()) this.faultless(session);
    this.agree(dispatcher);
  }

  private faultless(session: Session): void {
    for (const [fault, count] of Object.entries(session.faults)) {
      this.check(count === 0, () => `session of ${session.peer.name}: ${count} ${fault}`);
    }
  }

  private agree(dispatcher: Dispatcher): void {
    const { core, registry, peers } = dispatcher;
    let lines = 0;
    const filters = new Set<string>();
    const members = new Map<unknown, number>();
    for (const stream of registry.allStreams()) {
      lines++;
      let count = 0;
      for (const lane of stream.allLanes() as Iterable<Lane>) {
        if (lane.line !== stream.line) lines++;
        if (lane.options.filter !== undefined) filters.add(lane.options.filter.text);
        count += lane.members.length;
        this.check(lane.members.length > 0, () => `${stream.code}: a lane without members`);
        for (const member of lane.members) {
          const { peer } = member;
          this.check(peers.get(peer.id) === peer, () => `${stream.code}: a member whose session is gone`);
          members.set(peer, (members.get(peer) ?? 0) + member.requestCount);
        }
      }
      this.check(stream.members === count, () => `${stream.code}: ${count} members, counted ${stream.members}`);
      const orphan = stream.service.orphans.has(stream);
      this.check(
        orphan === (stream.upstreams.length === 0),
        () => `${stream.code}: orphan ${orphan}, ${stream.upstreams.length} upstreams`,
      );
    }
    this.check(core.lines.size === lines, () => `${lines} lines, counted ${core.lines.size}`);
    this.check(core.filters.size === filters.size, () => `${filters.size} filters, ${core.filters.size} compiled`);
    for (const peer of peers.values()) {
      const expected = members.get(peer) ?? 0;
      this.check(
        peer.requests.size === expected,
        () => `${peer.name}: ${peer.requests.size} requests, ${expected} in lanes`,
      );
    }
  }

  override quiet(dispatcher: Dispatcher): void {
    this.agree(dispatcher);
    for (const { connection, name, provider } of this.sim.members) {
      if (connection?.session !== undefined) this.faultless(connection.session);
      const runs = provider?.runs.size ?? 0;
      this.check(
        (provider?.provider.subscriptions ?? 0) === runs,
        () => `${name}: ${provider?.provider.subscriptions} subscriptions, ${runs} runs`,
      );
    }
  }

  override empty(dispatcher: Dispatcher): void {
    const { core, registry, peers, host } = dispatcher;
    this.check(registry.streamCount === 0, () => `${registry.streamCount} streams are left`);
    this.check(core.lines.size === 0, () => `${core.lines.size} lines are left`);
    this.check(core.filters.size === 0, () => `${core.filters.size} filters are left`);
    for (const service of registry.allServices()) {
      const { definition, streams, subscribers, orphans } = service;
      const none = streams === 0 && subscribers === 0 && orphans.size === 0;
      this.check(
        none,
        () => `${definition.name}: ${streams} streams, ${subscribers} subscribers, ${orphans.size} orphans`,
      );
    }
    const providers = this.sim.members.filter(({ provider }) => provider !== undefined);
    this.check(peers.size === providers.length, () => `${peers.size} sessions, ${providers.length} providers`);
    const dialledIn = providers.filter(({ plan }) => plan.address === undefined).length;
    this.check(host.size === dialledIn, () => `${host.size} links, ${dialledIn} providers dialled in`);
    // each open session has a timer for its heartbeats and one for its peer's
    const timers = this.sim.dispatcherProcess!.timers.size;
    this.check(timers === 2 * peers.size, () => `${timers} timers, ${peers.size} sessions`);
    for (const { name, outbox, requests } of peers.values()) {
      this.check(
        outbox.bytes === 0 && requests.size === 0,
        () => `${name}: ${outbox.bytes} bytes, ${requests.size} requests`,
      );
    }
    for (const member of this.sim.members) this.memberEmpty(member);
  }

  private memberEmpty({ name, subscriber, provider, process }: Checker['sim']['members'][number]): void {
    if (subscriber !== undefined) {
      const { subscriptions, lines, calls, sends } = subscriber.client.counts;
      const sum = subscriptions + lines + calls + sends;
      this.check(sum === 0, () => `${name}: ${subscriptions} subscriptions, ${lines} lines, ${calls} calls`);
    }
    if (provider === undefined) {
      this.check(process?.timers.size === 0, () => `${name}: ${process?.timers.size} timers after close`);
    } else {
      const { subscriptions } = provider.provider;
      this.check(subscriptions === 0, () => `${name}: still serves ${subscriptions}`);
      this.check(process?.timers.size === 2, () => `${name}: ${process?.timers.size} timers in one session`);
    }
  }
}
