import { randomInt } from 'node:crypto';
import { type Event, Router, type SocketOptions } from 'zeromq';
import { TrunklineError } from '../../errors.js';
import type { Link, LinkEvents } from '../../ports.js';
import type { Bindable } from '../listening.js';
import { RareWarnings } from '../rare-warnings.js';
import { ended, monitorLoop, plainBytes, receiveLoop } from './receive.js';
import { socketOptions, type ZmqSettings } from './settings.js';

/** After a lost connection: how long until the pipe is surely gone too, and how long until the next report, in ms. */
const suspectDelayMs = 20;
const suspectPauseMs = 100;

/**
 * A routing id as a key. Those that our socket chose are a zero byte and a u32; any other was chosen by the client, is
 * bytes and not text, and stays distinct as latin1.
 */
function keyOf(id: Buffer): number | string {
  return id.length === 5 && id[0] === 0 ? id.readUInt32BE(1) : id.toString('latin1');
}

let scattered = false;

/**
 * ZeroMQ counts routing ids up from the C library's `rand()`, which starts the same in every process: a stranger could
 * name the id that comes next as its own, which takes over a peer's place or ends the process. Throwing away some
 * sockets moves the start. That only raises the price; a port that strangers reach needs CURVE with allowed keys.
 */
function scatterRoutingIds(settings: ZmqSettings): void {
  if (scattered) return;
  scattered = true;
  for (let left = randomInt(1024); left >= 0; left--) new Router({ context: settings.context, linger: 0 }).close();
}

class AcceptedLink implements Link {
  readonly label: string;
  readonly #owner: ZmqListener;
  readonly #id: Buffer;
  readonly #key: number | string;
  #closed = false;

  constructor(owner: ZmqListener, id: Buffer, key: number | string) {
    this.#owner = owner;
    this.#id = id;
    this.#key = key;
    this.label = `${owner.address}#${id.toString('hex')}`;
  }

  send(batch: Uint8Array): void {
    if (this.#closed) this.#owner.dropped();
    else this.#owner.sendTo(this.#id, batch, this.#failed);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#owner.forget(this.#key, this);
  }

  // A rejection arrives in a later microtask, so `onDown` never runs inside the caller of `send`. With no high-water
  // mark on sending EAGAIN cannot come; if it does, the batch is lost and with it the order: the link is down.
  readonly #failed = (error: unknown): void => {
    if (this.#closed) return;
    this.close();
    this.#owner.lost(this, error);
  };
}

/** One ROUTER at one address. */
export class ZmqListener implements Bindable {
  #address: string;
  /** What is bound, with a numeric host. */
  readonly #endpoint: string;
  readonly #events: LinkEvents;
  readonly #settings: ZmqSettings;
  readonly #socket: Router;
  readonly #links = new Map<number | string, AcceptedLink>();
  #suspectTimer: NodeJS.Timeout | undefined;
  #suspectAgain = false;
  readonly #warnings: RareWarnings;
  #gone: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;
  #release: () => Promise<void> = async () => {};

  constructor(
    address: string,
    endpoint: string,
    events: LinkEvents,
    settings: ZmqSettings,
    more: SocketOptions<Router>,
  ) {
    this.#address = address;
    this.#endpoint = endpoint;
    this.#events = events;
    this.#settings = settings;
    this.#warnings = new RareWarnings(settings.log);
    scatterRoutingIds(settings);
    this.#socket = new Router({ ...socketOptions(settings), mandatory: true, handover: true, ...more });
  }

  get address(): string {
    return this.#address;
  }

  get ended(): boolean {
    return this.#closing !== undefined;
  }

  async start(): Promise<number> {
    if (this.ended) throw new TrunklineError('CLOSED', 'the transport was closed before');
    if (!this.#settings.polled) {
      this.#gone = monitorLoop(this.#socket, this.#settings, (event) => this.#monitored(event));
    }
    try {
      await this.#socket.bind(this.#endpoint);
    } catch (error) {
      await this.close();
      throw error;
    }
    const bound = (this.#socket.closed ? undefined : this.#socket.lastEndpoint) ?? this.#endpoint;
    return bound.startsWith('tcp:') ? Number(bound.slice(bound.lastIndexOf(':') + 1)) : 0;
  }

  serve(address: string, release: () => Promise<void>): void {
    this.#address = address;
    this.#release = release;
    if (!this.ended) void receiveLoop(this.#socket, this, this.#settings);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#suspectTimer);
    this.#warnings.close();
    for (const link of [...this.#links.values()]) link.close();
    this.#socket.close();
    await ended(this.#gone, this.#settings);
    await this.#release();
  }

  take(frames: Buffer[]): number {
    const [id, batch] = frames;
    if (frames.length !== 2 || id === undefined || batch === undefined) {
      this.#settings.counters.droppedFrames++;
      return frames.reduce((sum, frame) => sum + frame.length, 0);
    }
    const key = keyOf(id);
    let link = this.#links.get(key);
    if (link === undefined) {
      link = new AcceptedLink(this, id, key);
      this.#links.set(key, link);
    }
    this.#events.onBatch(link, plainBytes(batch));
    return batch.length;
  }

  stepEnd(): void {
    this.#events.onStepEnd?.();
  }

  sendTo(id: Buffer, batch: Uint8Array, failed: (error: unknown) => void): void {
    try {
      // With a send timeout of 0 the socket is never busy: it takes the batch now or rejects.
      this.#socket.send([id, batch]).then(undefined, failed);
    } catch (error) {
      this.dropped();
      this.#settings.log.warn({ error, address: this.#address }, 'sending failed');
    }
  }

  dropped(): void {
    this.#settings.counters.droppedSends++;
  }

  forget(key: number | string, link: AcceptedLink): void {
    if (this.#links.get(key) === link) this.#links.delete(key);
  }

  lost(link: AcceptedLink, error: unknown): void {
    if (this.ended) return;
    this.#settings.counters.unreachable++;
    this.#settings.log.debug({ error, link: link.label }, 'peer unreachable');
    this.#events.onDown?.(link, 'unreachable');
  }

  #monitored(event: Event): void {
    if (this.ended) return;
    if (event.type === 'disconnect') this.#suspect();
    else if (event.type.startsWith('handshake:error')) {
      this.#settings.counters.refusedHandshakes++;
      this.#warnings.warn('handshake refused', { address: this.#address, event });
    } else if (event.type === 'accept:error') {
      // without a free file descriptor ZeroMQ tries again at once, and again, for as long as somebody waits
      this.#settings.counters.faults++;
      this.#warnings.warn('accepting a connection failed', { address: this.#address, event });
    }
  }

  /** The event says only that somebody left. Many at once become one report, then one per pause. */
  #suspect(): void {
    if (this.#suspectTimer === undefined) this.#suspectTimer = timer(() => this.#report(), suspectDelayMs);
    else this.#suspectAgain = true;
  }

  #report(): void {
    this.#suspectAgain = false;
    this.#suspectTimer = timer(() => {
      this.#suspectTimer = undefined;
      if (this.#suspectAgain) this.#report();
    }, suspectPauseMs);
    this.#events.onSuspect?.();
  }
}

function timer(action: () => void, delayMs: number): NodeJS.Timeout {
  return setTimeout(action, delayMs).unref();
}
