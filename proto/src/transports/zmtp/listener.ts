import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rename } from 'node:fs/promises';
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { TrunklineError } from '../../errors.js';
import type { Link, LinkEvents } from '../../ports.js';
import { maxIpcPathBytes } from '../address.js';
import type { Bindable } from '../listening.js';
import { RareWarnings } from '../rare-warnings.js';
import type { Settings } from '../settings.js';
import { admit, connectionLimit } from './open-files.js';
import { Peer, type PeerOwner } from './peer.js';
import { Step, type StepOwner } from './step.js';

/** How long a stranger may take to shake hands, ms. */
const handshakeMs = 10_000;
const keepAliveMs = 60_000;

class AcceptedLink implements Link {
  closed = false;

  constructor(
    readonly label: string,
    private readonly connection: Connection,
    private readonly settings: Settings,
  ) {}

  send(batch: Uint8Array): void {
    if (this.closed) this.settings.counters.droppedSends++;
    else this.connection.peer.send(batch);
  }

  /** Forgets the peer; its connection stays, and what it says next begins another link. */
  close(): void {
    this.closed = true;
    if (this.connection.link === this) this.connection.link = undefined;
  }
}

/** One accepted connection and the link that it carries now, if any. */
class Connection implements PeerOwner {
  readonly peer: Peer;
  link: AcceptedLink | undefined;
  private readonly limit: NodeJS.Timeout;

  constructor(
    private readonly owner: ZmtpListener,
    socket: Socket,
    private readonly label: string,
    step: Step,
  ) {
    this.peer = new Peer(socket, 'ROUTER', this, step, owner.settings);
    this.limit = setTimeout(() => this.peer.refuse('the handshake takes too long'), handshakeMs).unref();
  }

  onReady(): void {
    clearTimeout(this.limit);
  }

  onMessage(_peer: Peer, batch: Uint8Array): void {
    // whoever has no session is answered each time, and may never read it
    if (this.link === undefined && this.peer.unread) {
      this.peer.refuse('it does not read');
      return;
    }
    this.link ??= new AcceptedLink(this.label, this, this.owner.settings);
    this.owner.events.onBatch(this.link, batch);
  }

  onGone(_peer: Peer, fault: string | undefined): void {
    clearTimeout(this.limit);
    // a client that wants CURVE leaves when it sees our greeting, before it has said so
    const left = this.peer.begun && !this.peer.ready;
    this.owner.gone(this, fault ?? (left ? 'it leaves within the handshake' : undefined));
  }

  end(lingerMs: number): void {
    clearTimeout(this.limit);
    this.link?.close();
    this.peer.end(lingerMs);
  }
}

/** One address that is listened at. */
export class ZmtpListener implements Bindable, StepOwner {
  address: string;
  private readonly server: Server;
  private readonly connections = new Set<Connection>();
  private readonly step: Step;
  private readonly warnings: RareWarnings;
  private accepted = 0;
  private most: number | undefined;
  private starting: Promise<number> | undefined;
  private closing: Promise<void> | undefined;
  private release: () => Promise<void> = async () => {};

  constructor(
    address: string,
    private readonly place: ListenOptions,
    readonly events: LinkEvents,
    readonly settings: Settings,
  ) {
    this.address = address;
    this.step = new Step(this, settings);
    this.warnings = new RareWarnings(settings.log);
    this.server = createServer({ keepAlive: true, keepAliveInitialDelay: keepAliveMs, noDelay: true });
    this.server.on('connection', (socket) => this.accept(socket));
  }

  async start(): Promise<number> {
    this.starting = this.begin();
    try {
      return await this.starting;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  private async begin(): Promise<number> {
    const { path } = this.place;
    this.most = await connectionLimit();
    if (this.closing !== undefined) throw new TrunklineError('CLOSED', 'the transport was closed before');
    // the system's socket removes the file that it made, whatever stands there by then: so it makes another one
    const made = path === undefined ? undefined : besides(path);
    // exclusive: the workers of a cluster would share it, and each would have some of the connections
    this.server.listen({ ...this.place, exclusive: true, ...(made === undefined ? {} : { path: made }) });
    await once(this.server, 'listening');
    this.server.on('error', (error) => this.acceptFailed(error));
    if (made !== undefined && path !== undefined) await rename(made, path);
    const bound = this.server.address();
    return bound !== null && typeof bound === 'object' ? bound.port : 0;
  }

  serve(address: string, release: () => Promise<void>): void {
    this.address = address;
    this.release = release;
  }

  stepEnd(): void {
    this.events.onStepEnd?.();
  }

  close(): Promise<void> {
    this.closing ??= this.shut();
    return this.closing;
  }

  gone(connection: Connection, fault: string | undefined): void {
    this.connections.delete(connection);
    const { link, peer } = connection;
    if (fault !== undefined) {
      if (!peer.ready) this.settings.counters.refusedHandshakes++;
      this.warnings.warn(peer.ready ? 'connection broken off' : 'handshake refused', {
        address: this.address,
        reason: fault,
      });
    }
    if (link === undefined) return;
    link.close();
    this.settings.counters.unreachable++;
    this.settings.log.debug({ link: link.label }, 'peer unreachable');
    this.events.onDown?.(link, 'unreachable');
  }

  private accept(socket: Socket): void {
    if (!admit(socket, this.most)) {
      this.acceptFailed(`more than ${this.most} connections`);
      return;
    }
    this.accepted++;
    const from = socket.remoteAddress === undefined ? '' : ` ${socket.remoteAddress}:${socket.remotePort}`;
    const connection = new Connection(this, socket, `${this.address}#${this.accepted}${from}`, this.step);
    this.connections.add(connection);
  }

  private acceptFailed(error: unknown): void {
    this.settings.counters.faults++;
    this.warnings.warn('accepting a connection failed', { address: this.address, error });
  }

  private async shut(): Promise<void> {
    // what is about to listen can be closed only once it does
    await this.starting?.catch(() => {});
    this.warnings.close();
    const gone = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const connection of this.connections) connection.end(this.settings.lingerMs);
    this.connections.clear();
    await gone;
    await this.release();
  }
}

/**
 * A name in the folder of a path, for the moment of binding, and not longer than a path may be: the system would cut it
 * off without a word.
 */
function besides(path: string): string {
  const folder = join(dirname(path), '/');
  const room = maxIpcPathBytes - Buffer.byteLength(folder);
  const name = randomBytes(4).toString('hex');
  return folder + (room > name.length ? `.${name}` : name.slice(0, room));
}
