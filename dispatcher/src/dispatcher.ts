import {
  Connection,
  FIRST_APPLICATION_TYPE,
  type Listener,
  type Log,
  OFFSET,
  payload,
  readU32,
  type Session,
  type SessionContext,
  type SessionEvents,
  SessionHost,
  sameText,
  Timer,
  type Transport,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { answerAdmin } from './admin/index.js';
import { applicationMessage } from './application.js';
import { Core } from './core.js';
import { type ConfigurationDiff, diffConfigurations, keptCurve } from './forwarding-table.js';
import type { Handlers } from './handlers.js';
import { MAX_OFFERED_CODES, MAX_OFFERED_RANGES, type Range } from './offers.js';
import { Peer } from './peer.js';
import { Provider } from './provider.js';
import { ProviderMessages, rangesOf } from './provider-messages.js';
import { compileFor, QueueMessages } from './queue-messages.js';
import { type QueueOptions, Queues } from './queues/index.js';
import type { Store } from './queues/store.js';
import { Recorder } from './recorder.js';
import { type AppliedChange, Registry } from './registry.js';
import type { Configuration } from './service.js';
import { StaticProviders } from './static-providers.js';
import { Subscriptions } from './subscriptions.js';

export interface DispatcherOptions {
  readonly context: SessionContext;
  readonly transport: Transport;
  readonly configuration: Configuration;
  readonly handlers: Handlers;
  readonly log: Log;
  /** Where queues on disk are kept; opened by `start`. */
  readonly store?: Store;
  /** Milliseconds since 1970, for what outlives the process. */
  readonly date?: () => number;
  /** Reads the options of a queue that is declared at run time. @throws TrunklineError PARAMS_INVALID */
  readonly readQueueOptions?: (given: unknown) => QueueOptions;
  /** Reads the configuration anew and applies it, for operators that ask by code 0. @throws TrunklineError CONFIG_INVALID */
  readonly reread?: () => Promise<ReloadReport>;
}

/** Longest OFFER or WITHDRAW that is looked at, bytes: more than the most codes and ranges need. */
const MAX_OFFER_BYTES = 2 ** 20;

/** What was still on its way when a stop ran out of time. */
export interface StopReport {
  readonly sessions: number;
  readonly undeliveredBytes: number;
  /** Messages of queues that consumers had not acknowledged: they are delivered again. */
  readonly unacknowledged: number;
}

export interface ReloadReport extends AppliedChange {
  readonly diff: ConfigurationDiff;
}

/** Wires the parts: sessions to peers, messages to what handles them, the configuration to the registry. */
export class Dispatcher {
  readonly core: Core;
  readonly registry: Registry;
  readonly host: SessionHost;
  readonly peers = new Map<number, Peer>();
  readonly statics: StaticProviders;
  readonly queues: Queues;
  private readonly recorder: Recorder;
  readonly readQueueOptions: (given: unknown) => QueueOptions;
  readonly startedAt: number;
  configuration: Configuration;
  private readonly listeners: Listener[] = [];
  private readonly subscriptions: Subscriptions;
  private readonly queueMessages: QueueMessages;
  private readonly providers: ProviderMessages;
  private handlers: Handlers;
  private nextPeer = 1;
  private stopped: Promise<StopReport> | undefined;
  private readonly events: SessionEvents;

  constructor(readonly options: DispatcherOptions) {
    const { context, configuration, handlers, log } = options;
    this.configuration = configuration;
    this.handlers = handlers;
    this.startedAt = context.clock.now();
    this.core = new Core(context, log, configuration.session.outboxBytes);
    this.events = {
      onOpen: (session) => this.opened(session),
      onControl: (session, type, batch, at) => this.control(session.owner as Peer, type, batch, at),
      onData: (session, batch, start, end, count) => this.data(session.owner as Peer, batch, start, end, count),
      onCredit: (session) => this.credit(session.owner as Peer),
      onClosed: (session, reason) => this.closed(session, reason),
    };
    this.statics = new StaticProviders(this.core, (provider) => this.dial(provider));
    this.registry = new Registry(this.core, configuration.services, handlers, (address) => this.statics.get(address));
    const { clock, timers, flusher } = context;
    const { store, date = () => 0, readQueueOptions = noOptions } = options;
    this.readQueueOptions = readQueueOptions;
    const compile = (filter: string) => compileFor(this.core, filter);
    this.queues = new Queues({ clock, timers, flusher, log, store, date, compile });
    this.queueMessages = new QueueMessages(this.core, this.queues, configuration.session.maxSubscriptions);
    this.subscriptions = new Subscriptions(this.core, this.registry, configuration.session);
    this.providers = new ProviderMessages(this.core);
    this.recorder = new Recorder(this.core, this.registry, this.queues, this.providers.currentHold);
    this.host = new SessionHost({
      context,
      events: this.events,
      maxSessions: configuration.session.maxSessions,
      authenticate: (hello) => this.authenticate(hello),
    });
  }

  /**
   * Opens the store, listens and dials. @throws TrunklineError ADDRESS_INVALID, ADDRESS_IN_USE, STORE_DAMAGED,
   * STORE_LOCKED, STORE_FULL, STORE_FAILED, OPTION_INVALID; nothing listens then
   */
  async start(): Promise<void> {
    try {
      await this.queues.open();
      this.queues.configure(this.configuration.queues);
      for (const { address } of this.configuration.listen) {
        const listener = await this.options.transport.listen(address, this.host);
        this.listeners.push(listener);
        this.core.log.info({ address: listener.address }, 'listening');
      }
    } catch (error) {
      await this.closeListeners();
      await this.queues.close();
      throw error;
    }
    this.statics.update(this.configuration.services);
    this.recorder.update(this.configuration.services);
  }

  /** Where it listens, with real ports. */
  get addresses(): string[] {
    return this.listeners.map((listener) => listener.address);
  }

  /** What the transport counts, by name. */
  get transportCounters(): object {
    return { ...this.options.transport.counters };
  }

  private authenticate(hello: payload.Hello): TrunklineError | undefined {
    const { tokens } = this.configuration;
    if (tokens.length === 0 || tokens.some((token) => sameText(hello.token, token))) return undefined;
    this.core.log.warn({ peer: hello.name }, 'credentials refused');
    return new TrunklineError('UNAUTHENTICATED');
  }

  // ---- sessions ----

  private opened(session: Session): void {
    const peer = new Peer(session, this.nextPeer++, this.core, this.providers.currentHold);
    session.owner = peer;
    this.peers.set(peer.id, peer);
    this.core.log.info({ session: peer.id, peer: peer.name, link: session.link.label }, 'session open');
  }

  private credit(peer: Peer): void {
    peer.outbox.drain();
    if (peer.consumers.size > 0) this.queueMessages.wake(peer);
  }

  private closed(session: Session, reason: TrunklineError): void {
    const peer = session.owner as Peer | undefined;
    if (peer === undefined || !this.peers.delete(peer.id)) return;
    this.core.log.info({ session: peer.id, peer: peer.name, reason: reason.message }, 'session closed');
    peer.close();
    const { provider } = peer;
    if (provider === undefined) return;
    this.providerDown(provider, reason.code === 'SESSION_LOST' ? 'provider lost' : 'provider left');
    this.registry.offers.forget(provider);
  }

  /** A static provider: the dispatcher is the dialling end, and the peer is a provider from the start. */
  private dial(provider: Provider): Connection {
    const { context, transport, log } = this.options;
    const token = () => this.configuration.token;
    const connection = new Connection({ context, transport, log, addresses: [provider.address!], token });
    connection.addRole({
      onOpen: (session) => {
        this.opened(session);
        const peer = session.owner as Peer;
        peer.provider = provider;
        this.providerUp(provider, session);
        this.registry.providerUp(provider);
      },
      onControl: (session, type, batch, at) => {
        this.control(session.owner as Peer, type, batch, at);
        return true;
      },
      onData: (session, batch, start, end, count) => {
        this.data(session.owner as Peer, batch, start, end, count);
        return true;
      },
      onCredit: (session) => this.credit(session.owner as Peer),
      onRefused: (error) => log.error({ provider: provider.label, error: error.message }, 'provider refuses us'),
      onLost: (reason, final) => {
        if (final && !this.core.stopping) {
          // such a BYE is obeyed: the next reload asks again
          log.warn({ provider: provider.label, reason: reason.message }, 'provider is not dialled any more');
        }
        if (provider.session !== undefined) this.closed(provider.session, reason);
      },
    });
    return connection;
  }

  private providerUp(provider: Provider, session: Session): void {
    provider.session = session;
    provider.starts++;
    provider.pacer.paused = false;
    this.core.log.info({ provider: provider.label }, 'provider up');
  }

  private providerDown(provider: Provider, reason: string): void {
    provider.session = undefined;
    provider.pacer.paused = true;
    provider.prober.close();
    this.core.log.warn({ provider: provider.label, streams: provider.upstreams.size, reason }, 'provider down');
    for (const upstream of [...provider.upstreams]) upstream.stream.upstreamLost(upstream, reason);
  }

  // ---- messages: the one switch ----

  private control(peer: Peer, type: number, batch: Uint8Array, at: number): void {
    switch (type) {
      case Type.REQUEST:
        this.request(peer, batch, at);
        return;
      case Type.CANCEL:
        this.subscriptions.cancel(peer, peer.session, batch, at);
        return;
      case Type.OFFER:
        this.offer(peer, batch, at);
        return;
      case Type.WITHDRAW:
        this.withdraw(peer, batch, at);
        return;
      case Type.ACK:
      case Type.NACK:
      case Type.EXTEND:
        this.queueMessages.settle(peer, type, batch, at);
        return;
      default:
        this.providers.control(peer, type, batch, at);
    }
  }

  private data(peer: Peer, batch: Uint8Array, start: number, end: number, count: number): void {
    const type = batch[start + OFFSET.type]!;
    if (type === Type.RESPONSE) {
      this.providers.responses(peer, batch, start, end, count);
      return;
    }
    if (type === Type.PUBLISH) {
      // a stopping dispatcher answers nothing: the publisher sends it again to the next one
      if (!this.core.stopping) this.queueMessages.publishes(peer, batch, start, end);
      return;
    }
    if (type >= FIRST_APPLICATION_TYPE) {
      for (let at = start; at < end; at += readU32(batch, at)) this.application(peer, type, batch, at);
    } else {
      peer.session.countFault('unexpected');
    }
    peer.session.consume(end - start);
  }

  private request(peer: Peer, batch: Uint8Array, at: number): void {
    // a stopping dispatcher answers nothing: the BYE that follows makes the subscriber ask again elsewhere, or later
    if (this.core.stopping) return;
    const code = readU32(batch, at + OFFSET.code);
    if (code === 0) answerAdmin(this, peer, batch, at);
    else if (this.queueMessages.has(code)) this.queueMessages.request(peer, batch, at);
    else this.subscriptions.request(peer, peer.session, batch, at);
  }

  private offer(peer: Peer, batch: Uint8Array, at: number): void {
    if (this.core.stopping) return;
    const offer = this.readOffer(peer, batch, at);
    if (offer === undefined) return;
    const { codes, ranges } = offer;
    const provider = peer.provider ?? new Provider(this.core, `session:${peer.id}`, peer.name);
    // what a static provider serves says the table; its offers tell that handlers are ready
    if (provider.address === undefined && !this.registry.offers.add(provider, codes, ranges)) {
      this.refuseOffer(peer);
      return;
    }
    if (peer.provider === undefined) {
      peer.provider = provider;
      this.providerUp(provider, peer.session);
    }
    this.registry.offered(provider, codes, ranges);
  }

  private withdraw(peer: Peer, batch: Uint8Array, at: number): void {
    const offer = this.readOffer(peer, batch, at);
    const { provider } = peer;
    if (offer === undefined || provider === undefined) return;
    const { codes, ranges } = offer;
    this.registry.offers.remove(provider, codes, ranges);
    this.registry.withdrawn(provider, codes, ranges);
  }

  private readOffer(peer: Peer, batch: Uint8Array, at: number): { codes: number[]; ranges: Range[] } | undefined {
    if (readU32(batch, at) > MAX_OFFER_BYTES) {
      this.refuseOffer(peer);
      return undefined;
    }
    const offer = peer.session.decode(payload.offer, batch, at);
    return offer && { codes: offer.codes, ranges: rangesOf(offer.ranges) };
  }

  private refuseOffer(peer: Peer): void {
    const message = `an offer of more than ${MAX_OFFERED_CODES} codes or ${MAX_OFFERED_RANGES} ranges`;
    peer.refuse(0, 0, { code: 'LIMIT_EXCEEDED', message });
  }

  private application(peer: Peer, type: number, batch: Uint8Array, at: number): void {
    const handler = this.handlers.application.get(type);
    if (handler === undefined) {
      peer.session.countFault('unexpected');
      return;
    }
    const { message, context } = applicationMessage(this.registry, peer, type, batch, at);
    this.core.guard(`message type ${type}`, () => handler.onMessage(message, context), undefined);
  }

  // ---- operation ----

  /**
   * Applies a new configuration as a whole; what needs a restart is named in the report and not applied.
   * @throws TrunklineError CLOSED after `stop`: nothing may be dialled any more
   */
  reload(configuration: Configuration, handlers: Handlers): ReloadReport {
    if (this.core.stopping) throw new TrunklineError('CLOSED', 'the dispatcher is stopping');
    this.queues.checkConfiguration(configuration.queues);
    const diff = diffConfigurations(this.configuration, configuration);
    this.handlers = handlers;
    const { listen, session } = this.configuration;
    const curve = keptCurve(this.configuration.curve, configuration.curve);
    this.configuration = { ...configuration, listen, session, curve };
    const applied = this.registry.replace(configuration.services, handlers);
    this.statics.update(configuration.services);
    this.queues.configure(configuration.queues);
    this.recorder.update(configuration.services);
    return { ...applied, diff };
  }

  /** Ends a session for good: the peer does not come back by itself. Returns whether there was one. */
  kick(id: number): boolean {
    const peer = this.peers.get(id);
    if (peer === undefined) return false;
    peer.session.close('KICKED', 'an operator ended the session');
    return true;
  }

  /**
   * Takes no more requests, waits until what is queued was taken and what consumers hold is acknowledged, at most
   * `drain` ms, and says BYE to everybody.
   * Always resolves; called again it is the same stop.
   */
  stop(): Promise<StopReport> {
    this.stopped ??= this.stopNow();
    return this.stopped;
  }

  private async stopNow(): Promise<StopReport> {
    this.core.stopping = true;
    this.host.refuseNew();
    await this.drained(this.configuration.drain);
    const waiting = [...this.peers.values()].filter((peer) => peer.outbox.bytes > 0);
    const report = {
      sessions: waiting.length,
      undeliveredBytes: waiting.reduce((sum, peer) => sum + peer.outbox.bytes, 0),
      unacknowledged: this.queueMessages.outstanding,
    };
    await this.queues.committer.settled();
    this.host.close();
    this.statics.close();
    // those that linger have nobody whose session could end them
    this.recorder.close();
    this.registry.close();
    await this.closeListeners();
    await this.queues.close();
    return report;
  }

  private drained(limit: number): Promise<void> {
    const { timers } = this.options.context;
    const end = this.core.now() + limit;
    return new Promise((resolve) => {
      const timer = new Timer({
        onTimer: () => {
          const peers = [...this.peers.values()];
          const busy =
            peers.some(({ outbox, session }) => outbox.bytes > 0 || session.behind) ||
            this.queueMessages.outstanding > 0;
          if (!busy || this.core.now() >= end) resolve();
          else timers.start(timer, 10);
        },
      });
      timers.start(timer, 0);
    });
  }

  private async closeListeners(): Promise<void> {
    await Promise.all(this.listeners.splice(0).map((listener) => listener.close()));
  }
}

function noOptions(): never {
  throw new TrunklineError('OPTION_INVALID', 'this dispatcher declares no queues at run time');
}
