import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { HANDSHAKE_REFUSED, type LinkEvents } from '../../ports.js';
import { type Address, formatAddress } from '../address.js';
import { NO_CONNECTION, reconnectPause, UNANSWERED } from '../reconnect.js';
import { numericHost } from '../resolve.js';
import type { Settings } from '../settings.js';
import type { Dialled } from '../socket-transport.js';
import { Peer, type PeerOwner } from './peer.js';
import { ReadRoom } from './read-room.js';
import { Step, type StepOwner } from './step.js';

const keepAliveMs = 60_000;

/** One dialled address; after each lost or refused connection it is dialled again. */
export class DialledLink implements Dialled, PeerOwner, StepOwner {
  readonly label: string;
  private readonly step: Step;
  private peer: Peer | undefined;
  private socket: Socket | undefined;
  private closed = false;
  private refusalTold = false;
  private timer: NodeJS.Timeout | undefined;
  /** Attempts since the link was last up: chooses the pause, and the address where a name has several. */
  private attempts = 0;
  private ended: Promise<void> = Promise.resolve();

  constructor(
    private readonly target: Address,
    private readonly events: LinkEvents,
    private readonly settings: Settings,
    /** Called once, when nothing of a closed link is left. */
    private readonly over: (link: DialledLink) => void,
  ) {
    this.label = formatAddress(target);
    this.step = new Step(this, settings);
    // Later, so that no event comes before the caller has its link.
    queueMicrotask(() => void this.dial());
  }

  send(batch: Uint8Array): void {
    if (this.peer?.ready === true && !this.peer.done) this.peer.send(batch);
    else this.settings.counters.droppedSends++;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    const { peer, socket } = this;
    this.peer = undefined;
    if (peer !== undefined && socket !== undefined) {
      this.ended = new Promise((resolve) => socket.once('close', () => resolve()));
      if (peer.ready) peer.end(this.settings.lingerMs);
      else peer.end(0);
    }
    void this.ended.then(() => this.over(this));
  }

  /** Resolves when nothing of a closed link is left. */
  gone(): Promise<void> {
    return this.ended;
  }

  stepEnd(): void {
    this.events.onStepEnd?.();
  }

  onReady(): void {
    clearTimeout(this.timer);
    this.attempts = 0;
    this.refusalTold = false;
    this.settings.log.info({ link: this.label }, 'link up');
    this.events.onUp?.(this);
  }

  onMessage(_peer: Peer, batch: Uint8Array): void {
    this.events.onBatch(this, batch);
  }

  onGone(peer: Peer, fault: string | undefined): void {
    clearTimeout(this.timer);
    this.peer = undefined;
    this.again();
    const refused = !peer.ready && fault !== undefined && fault !== NO_CONNECTION;
    if (refused) this.settings.counters.refusedHandshakes++;
    const told = !peer.ready && (!refused || this.refusalTold);
    this.refusalTold ||= refused;
    if (told) return;
    let reason = 'connection lost';
    if (refused) reason = fault === UNANSWERED ? UNANSWERED : HANDSHAKE_REFUSED;
    this.settings.log.warn({ link: this.label, reason, fault }, 'link down');
    this.events.onDown?.(this, reason);
  }

  private async dial(): Promise<void> {
    if (this.closed) return;
    const { target } = this;
    if (target.scheme === 'ipc') return this.connect({ path: target.path });
    const host = await numericHost(target.host, this.attempts);
    if (this.closed) return;
    if (host === undefined) {
      this.settings.log.warn({ link: this.label }, 'the host name is unknown');
      return this.again();
    }
    this.connect({ host, port: target.port, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs });
  }

  private connect(where: NetConnectOpts): void {
    const { connectTimeoutMs, handshakeTimeoutMs } = this.settings;
    const room = new ReadRoom();
    const onread = {
      buffer: () => room.next(),
      callback: (bytes: number) => {
        peer.receive(room.take(bytes));
        return true;
      },
    };
    const socket = connect({ ...where, onread });
    this.socket = socket;
    const peer = new Peer(socket, 'DEALER', this, this.step, this.settings);
    this.peer = peer;
    this.limit(peer, connectTimeoutMs, NO_CONNECTION);
    socket.once('connect', () => {
      if (this.peer === peer) this.limit(peer, handshakeTimeoutMs, UNANSWERED);
    });
  }

  private limit(peer: Peer, limitMs: number, reason: string): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => peer.refuse(reason), limitMs);
  }

  private again(): void {
    this.timer = setTimeout(() => void this.dial(), reconnectPause(this.attempts++, this.settings));
  }
}
