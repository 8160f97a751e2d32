import { Flag, OFFSET, readU32, Session, Turns, Type } from '@trunkline/proto';
import { keyOf } from '../../../dispatcher/dist/kept.js';
import { SpecialLane } from '../../../dispatcher/dist/lane.js';
import { Member } from '../../../dispatcher/dist/member.js';
import { Outbox } from '../../../dispatcher/dist/outbox.js';
import { Pacer, Prober } from '../../../dispatcher/dist/pacer.js';
import { Peer } from '../../../dispatcher/dist/peer.js';
import type { Provider } from '../../../dispatcher/dist/provider.js';
import { ProviderMessages } from '../../../dispatcher/dist/provider-messages.js';
import { Registry } from '../../../dispatcher/dist/registry.js';
import { Stream } from '../../../dispatcher/dist/stream.js';
import { Subscriptions } from '../../../dispatcher/dist/subscriptions.js';
import { Upstream } from '../../../dispatcher/dist/upstream.js';
import { ProviderSession } from '../../../publisher-sdk/dist/provider-session.js';
import { Delivery } from '../../../subscriber-sdk/dist/delivery.js';
import { SubscriptionTable } from '../../../subscriber-sdk/dist/table.js';
import { patch } from './patch.js';
import { queueCanaries } from './queues/canaries.js';
import { simulate, simulateQueues } from './simulation.js';
import { Violation } from './world.js';

/** A rule, broken in the real classes. A checker that does not find it is none. */
export interface Canary {
  readonly name: string;
  /** Checkers that may be the first to find it. */
  readonly checkers: readonly string[];
  /** Looked for in the simulation of queues alone. */
  readonly queues?: boolean;
  /** Breaks it; returns the way back. */
  break(): () => void;
}

export interface CanaryOutcome {
  readonly name: string;
  /** The checker that found it; undefined: none did, or one that has nothing to do with it. */
  readonly caught: string | undefined;
  readonly seed: number;
  readonly failure: unknown;
}

const ignore = () => undefined;

export const canaries: readonly Canary[] = [
  {
    name: 'equal requests do not share a stream (rule 1)',
    checkers: ['provider calls', 'nothing left', 'one upstream', 'linger'],
    break: () => patch(Registry, 'find', ignore),
  },
  {
    name: 'a request without an answer is not sent again (rule 3)',
    checkers: ['resend'],
    break: () => patch(Upstream, 'onTimer', (self, original) => (self.state === 'requested' ? undefined : original())),
  },
  {
    name: 'a request is sent again too early (rule 3)',
    checkers: ['resend'],
    break: () => patch(Upstream, 'resendDelay', (_self, original) => (original() as number) / 3),
  },
  {
    name: 'the request window is ignored (rule 4)',
    checkers: ['request window'],
    break: () =>
      patch(Pacer, 'advance', (self, original) => {
        const counted = Reflect.get(self, 'inFlight') as number;
        Reflect.set(self, 'inFlight', counted - 1000);
        original();
        Reflect.set(self, 'inFlight', (Reflect.get(self, 'inFlight') as number) + 1000);
      }),
  },
  {
    name: 'probing stops (rule 5)',
    checkers: ['probe'],
    break: () => patch(Prober, 'add', ignore),
  },
  {
    name: 'a provider with an empty memory ignores a probe (rule 5)',
    checkers: ['convergence'],
    break: () =>
      patch(ProviderSession, 'receiveRequest', (self, original, args) => {
        const [type, batch, at] = args as [number, Uint8Array, number];
        const known = self.subscriptions.has(readU32(batch, at + OFFSET.line));
        return type === Type.PROBE && !known ? undefined : original(...args);
      }),
  },
  {
    name: 'streams of a provider that came back are not asked for again (rule 6)',
    checkers: ['one upstream', 'convergence'],
    break: () => patch(Registry, 'providerUp', ignore),
  },
  {
    name: 'a new generation begins without a boundary (rule 7)',
    checkers: ['generations', 'convergence'],
    break: () =>
      patch(Stream, 'tellStatus', (_self, original, args) =>
        args[0] === 'new generation' ? undefined : original(...args),
      ),
  },
  {
    name: 'stale is not told (rule 7)',
    checkers: ['generations'],
    break: () =>
      patch(Stream, 'tellStatus', (self, original, args) => (self.status === 'stale' ? undefined : original(...args))),
  },
  {
    name: 'responses of an older generation pass (rule 7)',
    checkers: ['own answers', 'generations', 'arrivals', 'probe'],
    break: () =>
      patch(ProviderMessages, 'find', (_self, original, args) => {
        const [peer, batch, at] = args as [Peer, Uint8Array, number];
        const stream = peer.core.lines.get(readU32(batch, at + OFFSET.line));
        const upstream = stream instanceof Stream ? stream.upstreamOf(peer.provider as Provider) : undefined;
        return upstream ?? original(...args);
      }),
  },
  {
    name: 'linger is ignored (rule 8)',
    checkers: ['linger'],
    break: () =>
      patch(Stream, 'leave', (self, original, args) => {
        original(...args);
        if (self.members === 0) self.close();
      }),
  },
  {
    name: 'linger never ends (rule 8)',
    checkers: ['linger'],
    break: () => patch(Stream, 'onTimer', ignore),
  },
  {
    name: 'no CANCEL goes upstream (rule 8)',
    checkers: ['provider calls', 'nothing left'],
    break: () => patch(Upstream, 'close', (_self, original) => original(false)),
  },
  {
    name: 'the handler is called after unsubscribe (rule 8)',
    checkers: ['silence'],
    break: () => patch(Delivery, 'stop', ignore),
  },
  {
    name: 'what is kept comes as if it were live (rule 9)',
    checkers: ['sequences'],
    break: () =>
      patch(Member, 'sendKept', (_self, original, args) => {
        const [buffer, start] = args as [Uint8Array, number];
        const at = start + OFFSET.flags;
        buffer[at] = buffer[at]! & ~Flag.SNAPSHOT;
        return original(...args);
      }),
  },
  {
    name: 'a history that does not reach back says nothing (rule 9)',
    checkers: ['sequences'],
    break: () =>
      patch(Stream, 'answer', (self, original, args) => {
        if (self.kept !== undefined) Reflect.set(self.kept, 'dropped', 0);
        return original(...args);
      }),
  },
  {
    name: 'an END is not told (rule 10)',
    checkers: ['ends', 'convergence'],
    break: () =>
      patch(Member, 'tell', (_self, original, args) => {
        const [message] = args as [Uint8Array];
        return message[OFFSET.type] === Type.END ? undefined : original(...args);
      }),
  },
  {
    name: 'nothing is requested again after a reconnect (rule 11)',
    checkers: ['convergence'],
    break: () =>
      patch(SubscriptionTable, 'open', (self, _original, [session]) => Reflect.set(self, 'session', session)),
  },
  {
    name: 'lost batches go unnoticed (rule 11)',
    checkers: ['damage', 'convergence'],
    break: () =>
      patch(Session, 'receiveOwn', (_self, original, args) =>
        args[2] === Type.HEARTBEAT ? undefined : original(...args),
      ),
  },
  {
    name: 'a session that is gone leaves its members (rule 12)',
    checkers: ['nothing left'],
    break: () => patch(Peer, 'close', (self) => self.outbox.clear()),
  },
  {
    name: 'a filter goes upstream (rule 14)',
    checkers: ['options stay'],
    break: () =>
      patch(Subscriptions, 'stream', (_self, original, args) => {
        const [service, code, params, options] = args as [unknown, unknown, string, { filter?: { text: string } }];
        return original(service, code, `${params}${options.filter?.text ?? ''}`, options);
      }),
  },
  {
    name: 'an outbox has no bound (Flow)',
    checkers: ['flow'],
    break: () => patch(Outbox, 'makeRoom', () => true),
  },
  {
    name: 'dropped responses are not told (Flow)',
    checkers: ['sequences'],
    break: () =>
      patch(Member, 'tellMissed', (self) => {
        self.missed = undefined;
      }),
  },
  {
    name: 'a GAP counts one too many (Flow)',
    checkers: ['sequences'],
    break: () =>
      patch(Member, 'miss', (_self, original, [count, ...where]) => original((count as number) + 1, ...where)),
  },
  {
    name: 'a GAP does not count all that was dropped (Flow)',
    checkers: ['sequences'],
    break: () =>
      patch(Member, 'miss', (self, original, args) => (self.missed === undefined ? original(...args) : undefined)),
  },
  {
    name: 'a GAP tells of other responses than those that were dropped (Flow)',
    checkers: ['sequences'],
    break: () =>
      patch(Member, 'miss', (_self, original, [count, first, last]) =>
        original(count, (first as number) + 1, (last as number) + 1),
      ),
  },
  {
    name: 'a response is told in a GAP and delivered all the same (Flow)',
    checkers: ['sequences'],
    break: () =>
      patch(Outbox, 'miss', (self, original, args) => {
        original(...args);
        const [member, buffer, start, end, count] = args as [Member, Uint8Array, number, number, number];
        if (!member.left) (Reflect.get(self, 'session') as Session).sendData(buffer, start, end, count);
      }),
  },
  {
    name: 'conflation keeps the oldest instead of the newest (Flow)',
    checkers: ['sequences'],
    break: () =>
      patch(Outbox, 'queueLatest', (self, original, args) => {
        const [member, buffer, at] = args as [Member, Uint8Array, number];
        const waiting = Reflect.get(self, 'latest') as Map<Member, Map<string, unknown>>;
        return waiting.get(member)?.has(keyOf(buffer, at)) ? undefined : original(...args);
      }),
  },
  {
    name: 'what conflation holds back is never delivered (Flow)',
    checkers: ['sequences'],
    break: () => patch(SpecialLane, 'onTimer', ignore),
  },
  {
    name: 'some responses go to two of a group (Flow)',
    checkers: ['sequences'],
    break: () => {
      let count = 0;
      return patch(SpecialLane, 'deliver', (self, original, args) => {
        original(...args);
        if (self.options.returnHandler === 'group' && ++count % 5 === 0) original(...args);
      });
    },
  },
  {
    name: 'some responses go to nobody of a group (Flow)',
    checkers: ['sequences'],
    break: () => {
      let count = 0;
      return patch(SpecialLane, 'deliver', (self, original, args) =>
        self.options.returnHandler === 'group' && ++count % 5 === 0 ? undefined : original(...args),
      );
    },
  },
  {
    name: 'some credit is never given back (Flow)',
    checkers: ['flow', 'convergence'],
    break: () => patch(Session, 'consume', (_self, original, [bytes]) => original((bytes as number) - 20)),
  },
  {
    name: 'what waits for a later turn has none (Flow)',
    checkers: ['sequences'],
    break: () => patch(Turns, 'onTimer', ignore),
  },
  {
    name: 'credit that comes is not used (Flow)',
    checkers: ['flow'],
    break: () => patch(Outbox, 'drain', ignore),
  },
  ...queueCanaries,
];

/** Seeds that are tried until a checker finds a broken rule. */
const SEEDS = 150;

export async function runCanary({ name, checkers, queues = false, break: breakIt }: Canary): Promise<CanaryOutcome> {
  const mend = breakIt();
  try {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { failure } = await (queues ? simulateQueues(seed) : simulate(seed));
      if (failure === undefined) continue;
      const found = failure instanceof Violation && checkers.includes(failure.checker) ? failure.checker : undefined;
      return { name, caught: found, seed, failure };
    }
    return { name, caught: undefined, seed: SEEDS, failure: undefined };
  } finally {
    mend();
  }
}

export async function* runCanaries(): AsyncGenerator<CanaryOutcome> {
  for (const canary of canaries) yield await runCanary(canary);
}
