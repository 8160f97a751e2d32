import { setImmediate as nextTurn } from 'node:timers/promises';
import { Dealer, type Event, type SocketOptions } from 'zeromq';
import { HANDSHAKE_REFUSED, type LinkEvents } from '../../ports.js';
import { type Address, formatAddress, hostText, isIPv6 } from '../address.js';
import { NO_CONNECTION, reconnectPause, UNANSWERED } from '../reconnect.js';
import { numericHost } from '../resolve.js';
import type { Dialled } from '../socket-transport.js';
import { ended, monitorLoop, plainBytes, type Receiver, receiveLoop } from './receive.js';
import { socketOptions, type ZmqSettings } from './settings.js';

/** Longer than any socket lives without a connection, in ms. */
const neverMs = 3_600_000;

interface DialledOptions {
  /** Asked anew for each attempt, so that changed keys count from the next one. */
  security(): SocketOptions<Dealer>;
  /** Called once, when nothing of a closed link is left. */
  over(link: DialledLink): void;
}

/**
 * One DEALER to one address, replaced by a fresh one after each lost or refused connection: ZeroMQ's own reconnecting
 * gives up for ever after a protocol error (an oversize batch, a stranger at the address, a refused handshake) and looks
 * a name up once, in its I/O thread.
 */
export class DialledLink implements Dialled {
  readonly label: string;
  readonly #target: Address;
  readonly #events: LinkEvents;
  readonly #settings: ZmqSettings;
  readonly #more: DialledOptions;
  readonly #ending = new Set<Promise<unknown>>();
  #socket: Dealer | undefined;
  #receiver: Receiver | undefined;
  #up = false;
  #closed = false;
  #draining = false;
  #refusalTold = false;
  #timer: NodeJS.Timeout | undefined;
  /** Attempts since the link was last up: chooses the pause, and the address where a name has several. */
  #attempts = 0;

  constructor(target: Address, events: LinkEvents, settings: ZmqSettings, more: DialledOptions) {
    this.label = formatAddress(target);
    this.#target = target;
    this.#events = events;
    this.#settings = settings;
    this.#more = more;
    // Later, so that no event comes before the caller has its link.
    queueMicrotask(() => void this.#dial());
  }

  send(batch: Uint8Array): void {
    const socket = this.#socket;
    if (!this.#up || socket === undefined) {
      this.#settings.counters.droppedSends++;
      return;
    }
    // With a send timeout of 0 the socket is never busy: it takes the batch now or rejects, because the pipe is gone.
    socket.send(batch).then(undefined, () => {
      this.#settings.counters.droppedSends++;
      this.#lost(socket, 'connection lost');
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#up = false;
    clearTimeout(this.#timer);
    this.#socket?.close();
    this.#socket = undefined;
    void this.gone().then(() => this.#more.over(this));
  }

  /** Resolves when nothing of the link is left, also of its earlier sockets. */
  async gone(): Promise<void> {
    await ended(Promise.all(this.#ending), this.#settings);
  }

  async #dial(): Promise<void> {
    if (this.#closed) return;
    const target = this.#target;
    if (target.scheme === 'ipc') return this.#connect(formatAddress(target), false);
    const host = await numericHost(target.host, this.#attempts);
    if (this.#closed) return;
    if (host === undefined) {
      this.#settings.log.warn({ link: this.label }, 'the host name is unknown');
      return this.#again();
    }
    this.#connect(`tcp://${hostText(host)}:${target.port}`, isIPv6(host));
  }

  #connect(endpoint: string, ipv6: boolean): void {
    const settings = this.#settings;
    const socket = new Dealer({
      ...socketOptions(settings),
      ipv6,
      // `immediate` throws away what arrived and was not yet read when a connection ends, and so does a reconnect
      // interval of -1. A polled socket needs it all the same: it hears of no failed attempt and tells a connection
      // by being writable, so there ZeroMQ tries again by itself.
      immediate: settings.polled,
      reconnectInterval: settings.polled ? settings.reconnectMs : neverMs,
      reconnectMaxInterval: settings.polled ? settings.reconnectMaxMs : 0,
      connectTimeout: settings.connectTimeoutMs,
      ...this.#more.security(),
    });
    this.#socket = socket;
    if (!settings.polled) {
      const gone: Promise<unknown> = monitorLoop(socket, settings, (event) => this.#monitored(socket, event));
      this.#ending.add(gone);
      void gone.then(() => this.#ending.delete(gone));
    }
    this.#limit(socket, settings.connectTimeoutMs + settings.handshakeTimeoutMs, NO_CONNECTION);
    try {
      socket.connect(endpoint);
    } catch (error) {
      settings.counters.faults++;
      settings.log.error({ error, link: this.label }, 'dialling failed');
      this.#lost(socket, 'dialling failed');
      return;
    }
    const link = this;
    this.#receiver = {
      take: (frames) => this.#take(frames),
      stepEnd: () => this.#events.onStepEnd?.(),
      tick: () => this.#tick(socket),
      get ended() {
        return link.#socket !== socket;
      },
    };
    void receiveLoop(socket, this.#receiver, settings);
  }

  #take(frames: Buffer[]): number {
    const batch = frames[0];
    if (frames.length !== 1 || batch === undefined) {
      this.#settings.counters.droppedFrames++;
      return frames.reduce((sum, frame) => sum + frame.length, 0);
    }
    this.#events.onBatch(this, plainBytes(batch));
    return batch.length;
  }

  #tick(socket: Dealer): void {
    if (socket.writable) this.#connected(socket);
    else if (this.#up) this.#lost(socket, 'connection lost');
  }

  #monitored(socket: Dealer, event: Event): void {
    if (this.#socket !== socket) return;
    if (event.type === 'connect') this.#limit(socket, this.#settings.handshakeTimeoutMs, UNANSWERED);
    else if (event.type === 'handshake') this.#connected(socket);
    else if (event.type === 'close') this.#lost(socket, NO_CONNECTION);
    else if (event.type === 'disconnect') this.#lost(socket, this.#up ? 'connection lost' : NO_CONNECTION);
    else if (event.type.startsWith('handshake:error')) this.#lost(socket, this.#refusal(event.type));
  }

  /** A peer that ends the connection within the handshake refuses our keys, or, where there are none, is dying. */
  #refusal(type: string): string {
    if (type === 'handshake:error:other' && this.#more.security().curveServerKey === undefined) return NO_CONNECTION;
    return HANDSHAKE_REFUSED;
  }

  #connected(socket: Dealer): void {
    if (this.#up || this.#draining || this.#socket !== socket) return;
    clearTimeout(this.#timer);
    this.#up = true;
    this.#attempts = 0;
    this.#refusalTold = false;
    this.#settings.log.info({ link: this.label }, 'link up');
    this.#events.onUp?.(this);
  }

  #lost(socket: Dealer, reason: string): void {
    if (this.#socket !== socket || this.#draining) return;
    clearTimeout(this.#timer);
    if (this.#up) void this.#drain(socket, reason);
    else this.#ended(socket, reason, false);
  }

  /** What arrived before the connection broke is still read. */
  async #drain(socket: Dealer, reason: string): Promise<void> {
    this.#up = false;
    this.#draining = true;
    // The send goes nowhere; it makes a waiting receive look once more.
    if (!this.#settings.polled) socket.send('').then(undefined, () => {});
    for (let quiet = 0; quiet < 2 && this.#socket === socket; ) {
      await nextTurn();
      quiet = this.#settings.polled || this.#receiver?.waiting ? quiet + 1 : 0;
    }
    this.#draining = false;
    if (this.#socket === socket) this.#ended(socket, reason, true);
  }

  #ended(socket: Dealer, reason: string, wasUp: boolean): void {
    this.#socket = undefined;
    // What waits in it was meant for the lost connection.
    socket.linger = 0;
    socket.close();
    const refused = reason === HANDSHAKE_REFUSED || reason === UNANSWERED;
    if (refused) this.#settings.counters.refusedHandshakes++;
    const tell = wasUp || (refused && !this.#refusalTold);
    this.#refusalTold ||= refused;
    this.#again();
    if (!tell) return;
    this.#settings.log.warn({ link: this.label, reason }, 'link down');
    this.#events.onDown?.(this, reason);
  }

  #again(): void {
    this.#timer = setTimeout(() => void this.#dial(), reconnectPause(this.#attempts++, this.#settings));
  }

  #limit(socket: Dealer, limitMs: number, reason: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#lost(socket, reason), limitMs);
  }
}
