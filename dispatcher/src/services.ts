import type { Core } from './core.js';
import type { Handlers, ProbeListener, ProviderView, RequestView, ReturnHandler, SendHandler } from './handlers.js';
import type { Offers } from './offers.js';
import type { Provider } from './provider.js';
import { returnHandlers } from './return-handlers/index.js';
import { sendHandlers } from './send-handlers/index.js';
import type { ServiceDefinition } from './service.js';
import type { Stream } from './stream.js';

/** One entry of the forwarding table at work. */
export class Service {
  sendHandler: SendHandler;
  /** Streams without an upstream: no provider is up for them. */
  readonly orphans = new Set<Stream>();
  streams = 0;
  subscribers = 0;
  /** Static providers in the order of the configuration. */
  private statics: readonly Provider[] = [];

  constructor(
    readonly core: Core,
    public definition: ServiceDefinition,
    private handlers: Handlers,
    private readonly offers: Offers,
    provider: (address: string) => Provider,
    /** Tells the registry that nothing holds a stream any more. */
    readonly gone: (stream: Stream) => void,
  ) {
    this.sendHandler = this.findSendHandler();
    this.findProviders(provider);
  }

  /** Takes over a changed definition; streams stay. Returns whether the send handler is another one now. */
  update(definition: ServiceDefinition, handlers: Handlers, provider: (address: string) => Provider): boolean {
    this.handlers = handlers;
    const changed = definition.sendHandler !== this.definition.sendHandler;
    this.definition = definition;
    if (changed) this.sendHandler = this.findSendHandler();
    this.findProviders(provider);
    return changed;
  }

  private findSendHandler(): SendHandler {
    const name = this.definition.sendHandler;
    return sendHandlers[name]?.() ?? this.handlers.send.get(name)!;
  }

  private findProviders(provider: (address: string) => Provider): void {
    const { providers } = this.definition;
    this.statics = providers === 'dynamic' ? [] : providers.map(provider);
  }

  returnHandler(name: string): ReturnHandler | undefined {
    return returnHandlers[name] ?? this.handlers.return.get(name);
  }

  get probeListener(): ProbeListener | undefined {
    return this.handlers.probe.get(this.definition.onProbe);
  }

  /** Providers that are up for a code, in order. */
  candidates(code: number, without?: Provider): Provider[] {
    const all = this.definition.providers === 'dynamic' ? this.offers.of(code) : this.statics;
    const [first] = all;
    if (all.length === 1) return first!.up && first !== without ? [first!] : [];
    return all.filter((provider) => provider.up && provider !== without);
  }

  /** Whether the provider may serve the code at all, up or not. */
  serves(code: number, provider: Provider): boolean {
    return this.definition.providers === 'dynamic' ? this.offers.has(provider, code) : this.statics.includes(provider);
  }

  /** Whether the table names the provider for this service. */
  names(provider: Provider): boolean {
    return this.statics.includes(provider);
  }

  hasOther(stream: Stream, provider: Provider): boolean {
    return this.candidates(stream.code, provider).length > 0;
  }

  /** The provider(s) a request goes to; a handler that fails or answers nonsense chooses the first. */
  choose(request: RequestView, without?: Provider): readonly Provider[] {
    let up = this.candidates(request.code, without);
    if (up.length === 0 && without !== undefined) up = this.candidates(request.code);
    // one is no choice
    if (up.length <= 1) return up;
    const views: readonly ProviderView[] = up;
    const chosen = this.core.guard('send handler', () => this.sendHandler.choose(request, views), views.slice(0, 1));
    const valid = up.filter((provider) => Array.isArray(chosen) && chosen.includes(provider));
    return valid.length > 0 ? valid : up.slice(0, 1);
  }
}
