import { Dealer } from '../../../../dispatcher/dist/queues/dealer.js';
import { Group } from '../../../../dispatcher/dist/queues/group.js';
import { Inlet } from '../../../../dispatcher/dist/queues/inlet.js';
import { Publisher, type Run } from '../../../../dispatcher/dist/queues/publisher.js';
import { Queue } from '../../../../dispatcher/dist/queues/queue.js';
import type { Canary } from '../canaries.js';
import { patch } from '../patch.js';

const ignore = () => undefined;

/** Rules of queues, broken in the real classes. */
export const queueCanaries: readonly Canary[] = [
  {
    name: 'a publish is confirmed before it is stored (§8)',
    checkers: ['never lost', 'stored once'],
    queues: true,
    break: () =>
      patch(Inlet, 'cut', (_self, original, args) => {
        const batch = original(...args) as { runs: readonly Run[] } | undefined;
        for (const { confirm, number, count, sequence } of batch?.runs ?? []) confirm.stored(number, count, sequence);
        return batch;
      }),
  },
  {
    name: 'a publish that is sent again is stored again (§8)',
    checkers: ['stored once'],
    queues: true,
    break: () => patch(Publisher, 'find', ignore),
  },
  {
    name: 'an acknowledgement is confirmed before it is stored (§8)',
    checkers: ['acks'],
    queues: true,
    break: () => patch(Group, 'whenStored', (_self, _original, [done]) => (done as () => void)()),
  },
  {
    name: 'what was delivered and not acknowledged is forgotten (§8)',
    checkers: ['convergence', 'never lost'],
    queues: true,
    break: () => patch(Group, 'giveBack', ignore),
  },
  {
    name: 'a member gets more than its window (§8)',
    checkers: ['window'],
    queues: true,
    break: () => patch(Dealer, 'share', (_self, original, args) => (original(...args) as number) + 1),
  },
  {
    name: 'counts of deliveries are forgotten at a restart (§8)',
    checkers: ['counts'],
    queues: true,
    break: () =>
      patch(Group, 'cut', (self, original) => {
        const counts = new Map(self.counts);
        self.counts.clear();
        const cut = original();
        for (const [sequence, count] of counts) self.counts.set(sequence, count);
        return cut;
      }),
  },
  {
    name: 'a group is stored as it was before (§8)',
    checkers: ['positions', 'acks'],
    queues: true,
    break: () =>
      patch(Group, 'cut', (self, original) => {
        const { position } = self;
        self.position = Math.max(0, position - (position % 7));
        const cut = original();
        self.position = position;
        return cut;
      }),
  },
  {
    name: 'a position goes back while the dispatcher runs (§8)',
    checkers: ['positions'],
    queues: true,
    break: () =>
      patch(Group, 'onTimer', (self, original) => {
        original();
        self.position = Math.max(0, self.position - 1);
      }),
  },
  {
    name: 'an older position is stored over a newer one (§8)',
    checkers: ['positions'],
    queues: true,
    break: () =>
      patch(Group, 'cut', (self, original) => {
        const { position, acked } = self;
        self.position = Math.max(0, position - 1);
        if (position > 0) acked.add(position, position);
        const cut = original();
        if (position > 0) acked.remove(position, position);
        self.position = position;
        return cut;
      }),
  },
  {
    name: 'a group forgets which of what it read waits (§8)',
    checkers: ['convergence', 'never lost'],
    queues: true,
    break: () =>
      patch(Group, 'giveBack', (self, original, args) => {
        const [parts] = args as [readonly { first: number; last: number }[]];
        for (const { first, last } of parts) self.settle(first, last);
        return original([], ...args.slice(1));
      }),
  },
  {
    name: 'a group keeps members whose sessions are gone (§8, rule 12)',
    checkers: ['convergence', 'nothing left'],
    queues: true,
    break: () => patch(Group, 'leave', ignore),
  },
  {
    name: 'a redelivery passes the filter (§8)',
    checkers: ['filter'],
    queues: true,
    break: () => patch(Dealer, 'isDueAgain', () => true),
  },
  {
    name: 'what all groups are past is kept (§8)',
    checkers: ['convergence'],
    queues: true,
    break: () => patch(Queue, 'passed', ignore),
  },
];
