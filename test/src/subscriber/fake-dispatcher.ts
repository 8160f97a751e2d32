import {
  Connection,
  encodeMessage,
  type Header,
  type Link,
  type LinkEvents,
  type Meta,
  OFFSET,
  payload,
  readU32,
  type Session,
  type SessionEvents,
  SessionHost,
  type SessionLimits,
  silentLog,
  type TrunklineError,
  Type,
} from '@trunkline/proto';
import { Client, type ClientOptions } from '@trunkline/subscriber/core';
import { MemoryNetwork, MemoryWorld } from '../support/memory-link.js';

export const ADDRESS = 'memory://dispatcher';
export const EPOCH = Uint8Array.of(1, 1, 1);

export interface Asked {
  readonly session: Session;
  readonly code: number;
  readonly request: payload.Request;
}

export interface Answer {
  line?: number;
  sequence?: number;
  generation?: number;
  epoch?: Uint8Array;
  snapshot?: boolean;
  resumed?: boolean;
  status?: string;
}

/** The dispatcher's end of the wire, that answers what a test tells it to. */
export class FakeDispatcher implements SessionEvents, LinkEvents {
  readonly asked: Asked[] = [];
  /** Request ids that were cancelled. */
  readonly cancelled: number[] = [];
  readonly application: Uint8Array[] = [];
  /** Called for each REQUEST. */
  onRequest: (asked: Asked) => void = () => {};
  /** Whether application messages are consumed at once. */
  consuming = true;
  sessions = 0;
  session: Session | undefined;
  private host: SessionHost;

  constructor(
    readonly world: MemoryWorld,
    private readonly limits: Partial<SessionLimits> = {},
    private readonly authenticate?: () => TrunklineError | undefined,
  ) {
    this.host = this.createHost();
  }

  private createHost(): SessionHost {
    const { authenticate } = this;
    return new SessionHost({
      context: this.world.context(this.limits, 'dispatcher'),
      events: this,
      maxSessions: 100,
      ...(authenticate === undefined ? {} : { authenticate }),
    });
  }

  /** Another process takes the place of this one, without a word to anybody. */
  restart(): void {
    for (const session of [...this.host.all()]) session.lost('the process is gone');
    this.host = this.createHost();
    this.session = undefined;
  }

  close(): void {
    this.host.close();
  }

  onBatch(link: Link, batch: Uint8Array): void {
    this.host.onBatch(link, batch);
  }

  onDown(link: Link, reason: string): void {
    this.host.onDown(link, reason);
  }

  onStepEnd(): void {
    this.host.onStepEnd();
  }

  onOpen(session: Session): void {
    this.session = session;
    this.sessions++;
  }

  onControl(session: Session, type: number, batch: Uint8Array, at: number): void {
    if (type === Type.REQUEST) {
      const request = payload.readPayload(payload.request, batch, at);
      const asked = { session, code: readU32(batch, at + OFFSET.code), request };
      this.asked.push(asked);
      this.onRequest(asked);
    } else if (type === Type.CANCEL) {
      this.cancelled.push(payload.readPayload(payload.cancel, batch, at).request);
    }
  }

  onData(session: Session, batch: Uint8Array, start: number, end: number): void {
    this.application.push(batch.slice(start, end));
    if (this.consuming) session.consume(end - start);
  }

  onCredit(): void {}

  onClosed(session: Session): void {
    if (this.session === session) this.session = undefined;
  }

  get requests(): number[] {
    return this.asked.map(({ request }) => request.request);
  }

  accept({ session, code, request }: Asked, answer: Answer = {}): void {
    const { line = request.request, sequence = 0, generation = 1, epoch = EPOCH, status = 'live' } = answer;
    const { snapshot = false, resumed = false } = answer;
    const bytes = payload.accepted.encode({ request: request.request, epoch, snapshot, resumed, status });
    session.send({ type: Type.ACCEPTED, code, line, sequence, generation }, bytes);
  }

  refuse({ session, code, request }: Asked, reason: string, more: Partial<payload.Refused> = {}): void {
    const bytes = payload.refused.encode({ request: request.request, code: reason, message: `no: ${reason}`, ...more });
    session.send({ type: Type.REFUSED, code }, bytes);
  }

  respond(
    line: number,
    sequence: number,
    body?: unknown,
    header: Partial<Header> = {},
    meta: Partial<Meta> = {},
  ): void {
    const message = encodeMessage(
      { type: Type.RESPONSE, code: 100, line, sequence, generation: 1, ...header },
      body,
      meta,
    );
    this.session!.sendData(message, 0, message.length, 1);
  }

  status(line: number, state: string, reason = '', generation = 1): void {
    this.session!.send({ type: Type.STATUS, line, generation }, payload.status.encode({ state, reason }));
  }

  gap(line: number, count: number, first: number, last: number, reason: string): void {
    this.session!.send({ type: Type.GAP, line }, payload.gap.encode({ count, first, last, reason }));
  }

  end(line: number, code: string, message = '', exit?: number): void {
    const bytes = payload.end.encode(exit === undefined ? { code, message } : { code, message, exit });
    this.session!.send({ type: Type.END, line }, bytes);
  }
}

export interface Setup {
  readonly world: MemoryWorld;
  readonly network: MemoryNetwork;
  readonly dispatcher: FakeDispatcher;
  readonly connection: Connection;
  readonly client: Client;
  /** What the client wrote into its log. */
  readonly logged: string[];
  /** Breaks the link and brings it back, until a session is open again. */
  reconnect(): Promise<void>;
}

export interface SetupOptions {
  readonly limits?: Partial<SessionLimits>;
  readonly dispatcherLimits?: Partial<SessionLimits>;
  readonly client?: ClientOptions;
  /** Accepts every request by itself. Default true. */
  readonly accepting?: boolean;
  /** Nobody listens at the address yet. */
  readonly offline?: boolean;
  readonly authenticate?: () => TrunklineError | undefined;
}

export async function setUp(options: SetupOptions = {}): Promise<Setup> {
  const world = new MemoryWorld();
  const network = new MemoryNetwork(world);
  const dispatcher = new FakeDispatcher(world, options.dispatcherLimits, options.authenticate);
  if (options.accepting !== false) dispatcher.onRequest = (asked) => dispatcher.accept(asked);
  if (!options.offline) await network.listen(ADDRESS, dispatcher);
  const context = world.context(options.limits, 'subscriber');
  const connection = new Connection({ context, transport: network, addresses: [ADDRESS], log: silentLog });
  const logged: string[] = [];
  const write = (_: object, message: string) => logged.push(message);
  const log = { debug: write, info: write, warn: write, error: write };
  const client = new Client(connection, { log, ...options.client });
  await world.settle();
  return {
    world,
    network,
    dispatcher,
    connection,
    client,
    logged,
    reconnect: async () => {
      network.cut(ADDRESS);
      await world.settle();
      network.restore(ADDRESS);
      await world.advance(5000);
    },
  };
}
