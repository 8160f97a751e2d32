import { TrunklineError } from '../errors.js';
import type { Link, LinkEvents, Listener, Transport } from '../ports.js';
import { type Address, parseAddress } from './address.js';
import { type Bindable, bind } from './listening.js';
import { numericHost } from './resolve.js';
import type { Settings, TransportCounters } from './settings.js';

/** A link that was dialled. */
export interface Dialled extends Link {
  /** Resolves when nothing of the closed link is left. */
  gone(): Promise<void>;
}

/** What transports over `tcp://` and `ipc://` share: their listeners and links, and the end of them all. */
export abstract class SocketTransport<S extends Settings> implements Transport {
  protected readonly settings: S;
  readonly #listeners = new Set<Bindable>();
  readonly #links = new Set<Dialled>();
  #closing: Promise<void> | undefined;

  constructor(settings: S) {
    this.settings = settings;
  }

  /** A listener that is not bound yet. @param place the address with a numeric host */
  protected abstract createListener(text: string, place: Address, events: LinkEvents): Bindable;

  /** A link that begins to dial. @param over called once, when nothing of the closed link is left */
  protected abstract createLink(
    text: string,
    target: Address,
    events: LinkEvents,
    over: (link: Dialled) => void,
  ): Dialled;

  /** Gives back what else the transport has, once its listeners and links are gone. */
  protected release(): void {}

  get counters(): Readonly<TransportCounters> {
    return this.settings.counters;
  }

  async listen(address: string, events: LinkEvents): Promise<Listener> {
    const target = parseAddress(address, { listen: true });
    this.#assertOpen();
    const host = target.scheme === 'ipc' ? '' : await numericHost(target.host);
    if (host === undefined) {
      throw new TrunklineError('ADDRESS_INVALID', `cannot listen at "${address}": the host name is unknown`);
    }
    this.#assertOpen();
    const place = target.scheme === 'ipc' ? target : { ...target, host };
    const listener = this.createListener(address, place, events);
    this.#listeners.add(listener);
    await bind(
      address,
      target,
      listener,
      () => this.#assertOpen(),
      () => this.#listeners.delete(listener),
    );
    return listener;
  }

  dial(address: string, events: LinkEvents): Link {
    const target = parseAddress(address);
    this.#assertOpen();
    const link = this.createLink(address, target, events, (closed) => this.#links.delete(closed));
    this.#links.add(link);
    return link;
  }

  /** Closes every listener and link. Resolves in every state, at most about a second after the linger time. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const link of this.#links) link.close();
    await Promise.all([
      ...[...this.#listeners].map((listener) => listener.close()),
      ...[...this.#links].map((link) => link.gone()),
    ]);
    this.release();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TrunklineError('CLOSED', 'the transport was closed before');
  }
}
