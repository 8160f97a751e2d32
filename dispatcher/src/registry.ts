import type { Core } from './core.js';
import { ForwardingTable } from './forwarding-table.js';
import type { Handlers } from './handlers.js';
import { Offers, type Range } from './offers.js';
import type { Provider } from './provider.js';
import { returnHandlers } from './return-handlers/index.js';
import { sendHandlers } from './send-handlers/index.js';
import type { ServiceDefinition } from './service.js';
import { Service } from './services.js';
import { Stream } from './stream.js';

/** What a reload did to the services. */
export interface AppliedChange {
  readonly removed: readonly string[];
  /** Streams that ended because their service is gone. */
  readonly ended: number;
  /** Streams that go to another provider now. */
  readonly moved: number;
}

/** The services by code, and every stream by (service code, params): rule 1. */
export class Registry {
  readonly offers = new Offers();
  /** Hears of every stream that nothing holds any more. */
  onGone: (stream: Stream) => void = () => {};
  private table: ForwardingTable;
  private readonly services = new Map<string, Service>();
  /** The same by the entries of the table, for every request. */
  private byDefinition = new Map<ServiceDefinition, Service>();
  private readonly streams = new Map<number, Map<string, Stream>>();

  constructor(
    private readonly core: Core,
    definitions: readonly ServiceDefinition[],
    private handlers: Handlers,
    /** The provider behind a static address. */
    private readonly provider: (address: string) => Provider,
  ) {
    this.table = new ForwardingTable(definitions);
    for (const definition of definitions) this.services.set(nameOf(definition), this.create(definition));
    this.indexServices(definitions);
  }

  private indexServices(definitions: readonly ServiceDefinition[]): void {
    this.byDefinition = new Map(definitions.map((definition) => [definition, this.services.get(nameOf(definition))!]));
  }

  private create(definition: ServiceDefinition): Service {
    return new Service(this.core, definition, this.handlers, this.offers, this.provider, (gone) => this.remove(gone));
  }

  service(code: number): Service | undefined {
    const definition = this.table.find(code);
    return definition && this.byDefinition.get(definition);
  }

  allServices(): IterableIterator<Service> {
    return this.services.values();
  }

  knowsSendHandler(name: string): boolean {
    return Object.hasOwn(sendHandlers, name) || this.handlers.send.has(name);
  }

  knowsReturnHandler(name: string): boolean {
    return Object.hasOwn(returnHandlers, name) || this.handlers.return.has(name);
  }

  find(code: number, params: string): Stream | undefined {
    return this.streams.get(code)?.get(params);
  }

  /** A new stream, with its upstream on the way (rule 2). */
  open(service: Service, code: number, params: string): Stream {
    const stream = new Stream(service, code, params);
    let byParams = this.streams.get(code);
    if (byParams === undefined) {
      byParams = new Map();
      this.streams.set(code, byParams);
    }
    byParams.set(params, stream);
    service.streams++;
    return stream;
  }

  private remove(stream: Stream): void {
    const byParams = this.streams.get(stream.code);
    if (byParams?.get(stream.params) !== stream) return;
    byParams.delete(stream.params);
    if (byParams.size === 0) this.streams.delete(stream.code);
    stream.service.streams--;
    this.onGone(stream);
  }

  *allStreams(): Generator<Stream> {
    for (const byParams of this.streams.values()) yield* byParams.values();
  }

  /** Leaves no stream and no timer of one (rule 12). */
  close(): void {
    for (const stream of [...this.allStreams()]) stream.close();
  }

  get streamCount(): number {
    let count = 0;
    for (const byParams of this.streams.values()) count += byParams.size;
    return count;
  }

  /** A provider at a static address came up: whoever waits for it gets it. */
  providerUp(provider: Provider): void {
    for (const service of this.services.values()) {
      if (!service.names(provider)) continue;
      const joins = service.sendHandler.joins === true;
      for (const stream of [...(joins ? this.streamsIn([], [service.definition]) : service.orphans)]) {
        if (stream.service === service) stream.assign();
      }
    }
  }

  /** A provider OFFERed these: whoever waits for one of them gets it. */
  offered(provider: Provider, codes: readonly number[], ranges: readonly Range[]): void {
    for (const stream of [...this.streamsIn(codes, ranges)]) {
      const { service } = stream;
      stream.upstreamOf(provider)?.offered();
      const waits = !stream.served || service.sendHandler.joins === true;
      if (waits && service.serves(stream.code, provider)) stream.assign();
    }
  }

  /** A provider WITHDREW these. */
  withdrawn(provider: Provider, codes: readonly number[], ranges: readonly Range[]): void {
    for (const stream of [...this.streamsIn(codes, ranges)]) {
      const upstream = stream.upstreamOf(provider);
      if (upstream === undefined) continue;
      // a static provider stays the one to ask, and may offer the code again; another offer of a dynamic one goes on
      if (!stream.service.serves(stream.code, provider)) stream.upstreamLost(upstream, 'provider withdrew');
      else if (provider.address !== undefined) upstream.notProvided();
    }
  }

  private *streamsIn(codes: readonly number[], ranges: readonly Range[]): Generator<Stream> {
    const named = new Set(codes);
    for (const code of named) yield* this.streams.get(code)?.values() ?? [];
    if (ranges.length === 0) return;
    for (const [code, byParams] of this.streams) {
      if (!named.has(code) && ranges.some(({ from, to }) => code >= from && code <= to)) yield* byParams.values();
    }
  }

  /** Applies a new table as a whole. Streams whose service did not change see nothing. */
  replace(definitions: readonly ServiceDefinition[], handlers: Handlers): AppliedChange {
    this.table = new ForwardingTable(definitions);
    this.handlers = handlers;
    const wanted = new Map(definitions.map((definition) => [nameOf(definition), definition]));
    const removed = [...this.services.keys()].filter((name) => !wanted.has(name));
    for (const name of removed) this.services.delete(name);
    const rehandled = new Set<Service>();
    for (const [name, definition] of wanted) {
      const service = this.services.get(name);
      if (service === undefined) this.services.set(name, this.create(definition));
      else if (service.update(definition, handlers, this.provider)) rehandled.add(service);
    }
    this.indexServices(definitions);
    let ended = 0;
    let moved = 0;
    for (const stream of [...this.allStreams()]) {
      const service = this.service(stream.code);
      if (service === undefined) {
        stream.end({ code: 'SERVICE_REMOVED', message: `service ${stream.code} was removed` });
        ended++;
      } else if (stream.adopt(service, rehandled)) {
        moved++;
      }
    }
    return { removed, ended, moved };
  }
}

function nameOf(definition: ServiceDefinition): string {
  return definition.from === definition.to ? `${definition.from}` : `${definition.from}-${definition.to}`;
}
