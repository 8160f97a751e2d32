import type { Dispatcher } from '../dispatcher.js';
import type { Peer } from '../peer.js';
import type { Provider } from '../provider.js';
import type { QueueEntry } from '../queues/index.js';
import type { Service } from '../services.js';
import type { Stream } from '../stream.js';
import { queueView } from './queues.js';

/** A page of a list; `next` is what `after` has to be for the following one. */
interface Page {
  readonly items: readonly object[];
  readonly next?: number;
}

type View = (dispatcher: Dispatcher, after: number, limit: number) => object;

/** What can be seen of a running dispatcher, by name. */
export const views: Readonly<Record<string, View>> = {
  status,
  services: ({ registry }, after, limit) => page(registry.allServices(), after, limit, serviceView),
  streams: ({ registry }, after, limit) => page(registry.allStreams(), after, limit, streamView),
  sessions: ({ peers }, after, limit) => page(peers.values(), after, limit, sessionView),
  queues: async ({ queues }, after, limit) => {
    const { items, next } = page([...queues.all()], after, limit, (entry) => entry);
    const shown = await Promise.all((items as QueueEntry[]).map(queueView));
    return next === undefined ? { items: shown } : { items: shown, next };
  },
  providers: (dispatcher, after, limit) => page(allProviders(dispatcher), after, limit, providerView),
};

function page<T>(all: Iterable<T>, after: number, limit: number, view: (item: T) => object): Page {
  const items: object[] = [];
  let index = 0;
  for (const item of all) {
    if (index++ < after) continue;
    if (items.length === limit) return { items, next: after + limit };
    items.push(view(item));
  }
  return { items };
}

function status(dispatcher: Dispatcher): object {
  const { core, registry, peers, addresses } = dispatcher;
  return {
    addresses,
    uptimeMs: Math.round(core.now() - dispatcher.startedAt),
    sessions: peers.size,
    streams: registry.streamCount,
    timers: core.context.timers.size,
    lines: core.lines.size,
    filters: core.filters.size,
    strangers: dispatcher.host.strangers,
    queues: [...dispatcher.queues.all()].length,
    commits: dispatcher.queues.committer.commits,
    counters: { ...core.counters },
    transport: dispatcher.transportCounters,
  };
}

function serviceView({ definition, streams, subscribers, orphans }: Service): object {
  const { from, to, name } = definition;
  const { resendAfter, probeAfter, linger } = definition;
  const times = { resendAfter: time(resendAfter), probeAfter: time(probeAfter), linger: time(linger) };
  return { from, to, name, streams, subscribers, withoutProvider: orphans.size, ...times };
}

/** 0 is how the configuration switches something off (F54). */
function time(ms: number): string {
  return ms === 0 ? 'off' : `${ms}ms`;
}

/** The params as text where they are UTF-8, otherwise as hex. */
function paramsText(params: string): string {
  const bytes = Uint8Array.from(params, (char) => char.charCodeAt(0));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return `0x${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
  }
}

function streamView(stream: Stream): object {
  const { code, params, line, status, generation, sequence, messagesOut, members, laneCount, upstreams } = stream;
  return {
    code,
    service: stream.service.definition.name,
    params: paramsText(params),
    line,
    status,
    generation,
    subscribers: members,
    lanes: laneCount,
    upstreams: upstreams.map(({ provider, state }) => ({ provider: provider.label, state })),
    messagesIn: sequence,
    messagesOut,
  };
}

function sessionView(peer: Peer): object {
  const { session, outbox, requests, id, name, provider } = peer;
  const { messagesIn, messagesOut, bytesIn, bytesOut, credit, faults, link } = session;
  return {
    id,
    name,
    link: link.label,
    requests: requests.size,
    provider: provider !== undefined,
    messagesIn,
    messagesOut,
    bytesIn,
    bytesOut,
    credit,
    outboxBytes: outbox.bytes,
    faults,
  };
}

function* allProviders({ peers, statics }: Dispatcher): Generator<Provider> {
  yield* statics.all();
  for (const { provider } of peers.values()) {
    if (provider !== undefined && provider.address === undefined) yield provider;
  }
}

function providerView(provider: Provider): object {
  const { label, address, up, starts, pacer, upstreams } = provider;
  return {
    name: label,
    kind: address === undefined ? 'dynamic' : 'static',
    up,
    starts,
    streams: upstreams.size,
    unanswered: pacer.unanswered,
    waiting: pacer.size,
  };
}
