import type { Core } from './core.js';
import { ForwardingTable } from './forwarding-table.js';
import type { Handlers } from './handlers.js';
import { Offers } from './offers.js';
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
  }

  private create(definition: ServiceDefinition): Service {
    return new Service(this.core, definition, this.handlers, this.offers, this.provider);
  }

  service(code: number): Service | undefined {
    const definition = this.table.find(code);
    return definition && this.services.get(nameOf(definition));
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
    const stream = new Stream(this.core, service, code, params, (gone) => this.remove(gone));
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

  /** A provider came up, or OFFERed more: whoever waits for it gets it. */
  providerUp(provider: Provider): void {
    for (const service of this.services.values()) {
      const joins = service.sendHandler.joins === true;
      const waiting = joins ? this.streamsOf(service) : service.orphans;
      for (const stream of [...waiting]) {
        if ((joins || stream.upstreams.length === 0) && service.serves(stream.code, provider)) stream.assign();
      }
    }
    for (const upstream of [...provider.upstreams]) upstream.offered();
  }

  private *streamsOf(service: Service): Generator<Stream> {
    for (const stream of this.allStreams()) if (stream.service === service) yield stream;
  }

  /** Applies a new table as a whole. Streams whose service did not change see nothing. */
  replace(definitions: readonly ServiceDefinition[], handlers: Handlers): AppliedChange {
    this.table = new ForwardingTable(definitions);
    this.handlers = handlers;
    const wanted = new Map(definitions.map((definition) => [nameOf(definition), definition]));
    const removed = [...this.services.keys()].filter((name) => !wanted.has(name));
    for (const name of removed) this.services.delete(name);
    for (const [name, definition] of wanted) {
      const service = this.services.get(name);
      if (service === undefined) this.services.set(name, this.create(definition));
      else service.update(definition, handlers, this.provider);
    }
    let ended = 0;
    let moved = 0;
    for (const stream of [...this.allStreams()]) {
      const service = this.service(stream.code);
      if (service === undefined) {
        stream.end({ code: 'SERVICE_REMOVED', message: `service ${stream.code} was removed` });
        ended++;
      } else if (stream.adopt(service)) {
        moved++;
      }
    }
    return { removed, ended, moved };
  }
}

function nameOf(definition: ServiceDefinition): string {
  return definition.from === definition.to ? `${definition.from}` : `${definition.from}-${definition.to}`;
}
