import {
  type Configuration,
  Dispatcher,
  type Handlers,
  parseConfiguration,
  readQueueOptions,
} from '@trunkline/dispatcher';
import {
  bodyStart,
  encodeMeta,
  encodeParams,
  Flag,
  HEADER_BYTES,
  type Meta,
  OFFSET,
  payload,
  readU32,
  readU53,
  Session,
  type SessionLimits,
  silentLog,
  Timer,
  Type,
  typeName,
  writeHeader,
} from '@trunkline/proto';
import { type MemoryLink, MemoryNetwork, MemoryWorld } from './memory-link.js';
import { SimulatedDisk } from './simulated-store.js';

export const ADDRESS = 'tcp://127.0.0.1:7400';
const text = new TextDecoder();

/** A message as a raw peer got it. */
export interface Received {
  readonly type: string;
  readonly code: number;
  readonly line: number;
  readonly sequence: number;
  readonly generation: number;
  readonly flags: number;
  readonly body: string;
  /** The body, or payload, as bytes. */
  readonly raw: Uint8Array;
  /** Decoded payload of a control message. */
  readonly fields: Record<string, unknown>;
}

const codecs: Partial<Record<number, payload.Codec<object>>> = {
  [Type.ACCEPTED]: payload.accepted as payload.Codec<object>,
  [Type.REFUSED]: payload.refused as payload.Codec<object>,
  [Type.END]: payload.end as payload.Codec<object>,
  [Type.STATUS]: payload.status as payload.Codec<object>,
  [Type.GAP]: payload.gap as payload.Codec<object>,
  [Type.REQUEST]: payload.upstream as payload.Codec<object>,
  [Type.PROBE]: payload.upstream as payload.Codec<object>,
};

/** A process that speaks the protocol by hand: everything it gets is noted, nothing is answered by itself. */
export class RawPeer {
  readonly received: Received[] = [];
  session: Session;
  readonly link: MemoryLink;
  closed: string | undefined;
  /** Gives credit back for what it gets; set to false to be slow. */
  consuming = true;
  private unconsumed = 0;

  constructor(
    readonly world: MemoryWorld,
    network: MemoryNetwork,
    address: string,
    limits: Partial<SessionLimits> = {},
  ) {
    const link = network.dial(address, {
      onBatch: (_link, batch) => this.session.receive(batch),
      onDown: (_link, reason) => this.session.down(reason),
      onUp: () => this.session.hello(),
    });
    this.link = link as MemoryLink;
    const context = world.context(limits);
    this.session = new Session(
      link,
      context,
      {
        onOpen: () => {},
        onCredit: () => {},
        onControl: (_session, type, batch, at) => this.note(type, batch, at),
        onData: (_session, batch, start, end) => this.data(batch, start, end),
        onClosed: (_session, reason) => {
          this.closed = reason.code;
        },
      },
      context.random.bytes(8),
    );
  }

  private data(batch: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; at += readU32(batch, at)) this.note(batch[at + OFFSET.type]!, batch, at);
    if (this.consuming) this.session.consume(end - start);
    else this.unconsumed += end - start;
  }

  /** Takes everything that waits, and from now on everything at once. */
  resume(): void {
    this.consuming = true;
    this.session.consume(this.unconsumed);
    this.unconsumed = 0;
  }

  private note(type: number, batch: Uint8Array, at: number): void {
    const codec = codecs[type];
    const raw = batch.slice(bodyStart(batch, at), at + readU32(batch, at));
    this.received.push({
      raw,
      type: typeName(type),
      code: readU32(batch, at + OFFSET.code),
      line: readU32(batch, at + OFFSET.line),
      sequence: readU53(batch, at + OFFSET.sequence),
      generation: readU32(batch, at + OFFSET.generation),
      flags: batch[at + OFFSET.flags]!,
      body: codec ? '' : text.decode(raw),
      fields: codec ? { ...(payload.readPayload(codec, batch, at) as Record<string, unknown>) } : {},
    });
  }

  /** What came since the last call, of one type or of all. */
  take(type?: string): Received[] {
    const taken = this.received.filter((each) => type === undefined || each.type === type);
    const rest = this.received.filter((each) => type !== undefined && each.type !== type);
    this.received.splice(0, this.received.length, ...rest);
    return taken;
  }

  request(
    code: number,
    request: number,
    options: Partial<Omit<payload.Request, 'params'>> & { params?: unknown } = {},
  ): void {
    const fields = { ...options, request, params: encodeParams(options.params) };
    this.session.send({ type: Type.REQUEST, code }, payload.request.encode(fields));
  }

  cancel(request: number, code = 0): void {
    this.session.send({ type: Type.CANCEL, code }, payload.cancel.encode({ request }));
  }

  offer(...codes: number[]): void {
    this.session.send({ type: Type.OFFER }, payload.offer.encode({ codes, ranges: [] }));
  }

  withdraw(...codes: number[]): void {
    this.session.send({ type: Type.WITHDRAW }, payload.offer.encode({ codes, ranges: [] }));
  }

  /** Answers a REQUEST or PROBE it got. */
  answer(request: Received, type: number = Type.ACCEPTED, bytes?: Uint8Array): void {
    const { code, line, generation } = request;
    this.session.send({ type, code, line, generation }, bytes);
  }

  refuse(request: Received, code = 'REFUSED', message = 'no'): void {
    this.answer(request, Type.REFUSED, payload.refused.encode({ code, message, retryable: false }));
  }

  end(request: Received, fields: { code?: string; message?: string; exit?: number } = {}): void {
    this.answer(request, Type.END, payload.end.encode({ code: 'COMPLETED', ...fields }));
  }

  respond(request: Received, body: string, options: Partial<Meta> & { final?: boolean; json?: boolean } = {}): void {
    const { code, line, generation } = request;
    const { final, json, ...metaFields } = options;
    const meta = encodeMeta(metaFields);
    const bytes = new TextEncoder().encode(body);
    const length = HEADER_BYTES + meta.length + bytes.length;
    const at = this.session.reserveData(length);
    if (at < 0) throw new Error('no credit');
    const flags = (final ? Flag.FINAL : 0) | (json ? Flag.JSON : 0);
    const { target } = this.session;
    writeHeader(target, at, length, { type: Type.RESPONSE, code, line, generation, flags, metaLength: meta.length });
    target.set(meta, at + HEADER_BYTES);
    target.set(bytes, at + HEADER_BYTES + meta.length);
  }
}

export const noHandlers: Handlers = { send: new Map(), return: new Map(), probe: new Map(), application: new Map() };

/** Checks and completes a configuration as the daemon does. */
export function configure(services: object[], more: object = {}): Configuration {
  const file = { listen: [ADDRESS], ...more, services };
  const bytes = new TextEncoder().encode(JSON.stringify(file));
  return parseConfiguration(bytes, { baseDirectory: '/', moduleExists: () => true }).configuration;
}

/** A dispatcher in a world without sockets and with a clock of its own. */
export class DispatcherWorld {
  readonly world = new MemoryWorld();
  readonly network = new MemoryNetwork(this.world);
  /** Outlives the dispatcher; used where the configuration names a dataDirectory. */
  readonly disk = new SimulatedDisk(this.world.random, (ms, run) =>
    this.world.timers.start(new Timer({ onTimer: run }), Math.ceil(ms)),
  );
  date = 1_700_000_000_000;
  dispatcher: Dispatcher;

  private constructor(
    public configuration: Configuration,
    readonly handlers: Handlers,
  ) {
    this.dispatcher = this.create();
  }

  private create(): Dispatcher {
    const { session } = this.configuration;
    const { heartbeat, livenessFactor, maxMessageBytes, receiveWindow } = session;
    const context = this.world.context(
      { heartbeat, livenessFactor, maxMessage: maxMessageBytes, receiveWindow },
      'dispatcher',
    );
    const { network: transport, configuration, handlers } = this;
    const store = configuration.dataDirectory === undefined ? {} : { store: this.disk.attach() };
    const date = () => this.date;
    const more = { date, readQueueOptions, ...store };
    return new Dispatcher({ context, transport, configuration, handlers, log: silentLog, ...more });
  }

  static async start(services: object[], more: object = {}, handlers: Handlers = noHandlers): Promise<DispatcherWorld> {
    const made = new DispatcherWorld(configure(services, more), handlers);
    await made.dispatcher.start();
    return made;
  }

  /** The process dies without a word and another one begins with an empty memory. */
  async restart(): Promise<void> {
    this.network.cut(ADDRESS);
    this.network.forget(ADDRESS);
    await this.world.settle();
    this.disk.crash();
    this.dispatcher.queues.committer.close();
    for (const { queue } of this.dispatcher.queues.all()) queue.stopTimers();
    this.dispatcher = this.create();
    await this.dispatcher.start();
    await this.world.settle();
  }

  async peer(limits: Partial<SessionLimits> = {}): Promise<RawPeer> {
    const peer = new RawPeer(this.world, this.network, ADDRESS, limits);
    await this.world.settle();
    return peer;
  }

  /** A peer that offers codes. */
  async provider(...codes: number[]): Promise<RawPeer> {
    const provider = await this.peer();
    provider.offer(...codes);
    await this.world.settle();
    return provider;
  }

  settle(): Promise<void> {
    return this.world.settle();
  }

  advance(ms: number): Promise<void> {
    return this.world.advance(ms);
  }

  /** Everything that must be nothing when nobody asks for anything (rule 12). */
  leftovers(): object {
    const { core, registry, peers } = this.dispatcher;
    return {
      streams: registry.streamCount,
      lines: core.lines.size,
      filters: core.filters.size,
      orphans: [...registry.allServices()].reduce((sum, service) => sum + service.orphans.size, 0),
      subscribers: [...registry.allServices()].reduce((sum, service) => sum + service.subscribers, 0),
      requests: [...peers.values()].reduce((sum, peer) => sum + peer.requests.size, 0),
      outboxes: [...peers.values()].reduce((sum, peer) => sum + peer.outbox.bytes, 0),
    };
  }
}

export const nothing = { streams: 0, lines: 0, filters: 0, orphans: 0, subscribers: 0, requests: 0, outboxes: 0 };
