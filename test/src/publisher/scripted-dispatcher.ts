import {
  Connection,
  DataMessage,
  type Header,
  OFFSET,
  payload,
  readU32,
  type Session,
  SessionHost,
  type SessionLimits,
  silentLog,
  Type,
  typeName,
} from '@trunkline/proto';
import { Provider } from '@trunkline/publisher/core';
import { MemoryNetwork, MemoryWorld } from '../support/memory-link.js';

export const ADDRESS = 'memory://dispatcher';
const utf8 = new TextEncoder();

export interface Seen {
  readonly type: string;
  readonly code: number;
  readonly line: number;
  readonly generation: number;
  readonly message: DataMessage;
}

/** A dispatcher that does what a test tells it to, and writes down what it gets. */
export class ScriptedDispatcher {
  readonly host: SessionHost;
  readonly seen: Seen[] = [];
  session: Session | undefined;
  /** Data is consumed at once, or kept unconsumed. */
  consuming = true;
  private unconsumed = 0;

  constructor(world: MemoryWorld, limits: Partial<SessionLimits> = {}) {
    this.host = new SessionHost({
      context: world.context(limits, 'dispatcher'),
      maxSessions: 10,
      events: {
        onOpen: (session) => {
          this.session = session;
          this.unconsumed = 0;
        },
        onControl: (_session, _type, batch, at) => this.note(batch, at),
        onData: (session, batch, start, end) => {
          for (let at = start; at < end; at += readU32(batch, at)) this.note(batch, at);
          if (this.consuming) session.consume(end - start);
          else this.unconsumed += end - start;
        },
        onCredit: () => {},
        onClosed: () => {
          this.session = undefined;
        },
      },
    });
  }

  private note(batch: Uint8Array, at: number): void {
    const message = new DataMessage(batch, at);
    const { code, line, generation } = message;
    this.seen.push({ type: typeName(batch[at + OFFSET.type]!), code, line, generation, message });
  }

  /** Consumes what was kept. */
  consume(): void {
    this.session?.consume(this.unconsumed);
    this.unconsumed = 0;
  }

  send(header: Header, bytes?: Uint8Array): void {
    this.session?.send(header, bytes);
  }

  request(code: number, line: number, generation = 1, params: unknown = undefined, type: number = Type.REQUEST): void {
    const bytes = params === undefined ? new Uint8Array(0) : utf8.encode(JSON.stringify(params));
    this.send({ type, code, line, generation }, payload.upstream.encode({ params: bytes }));
  }

  probe(code: number, line: number, generation = 1, params: unknown = undefined): void {
    this.request(code, line, generation, params, Type.PROBE);
  }

  cancel(line: number, generation = 1): void {
    this.send({ type: Type.CANCEL, line, generation });
  }

  /** What came since the last call, as `TYPE code/line/generation`, without OFFERs. */
  take(): string[] {
    const taken = this.seen.splice(0).filter(({ type }) => type !== 'OFFER');
    return taken.map(({ type, code, line, generation }) => `${type} ${code}/${line}/${generation}`);
  }

  of(type: string): DataMessage[] {
    return this.seen.filter((seen) => seen.type === type).map(({ message }) => message);
  }
}

/** The payload of a message that is not data. */
export function read<T>(kind: payload.Codec<T>, message: DataMessage | undefined): T {
  if (message === undefined) throw new Error('no such message came');
  return payload.readPayload(kind, message.batch, message.at);
}

export interface Bench {
  readonly world: MemoryWorld;
  readonly network: MemoryNetwork;
  readonly dispatcher: ScriptedDispatcher;
  readonly connection: Connection;
  readonly provider: Provider;
}

export function dial(world: MemoryWorld, network: MemoryNetwork, limits: Partial<SessionLimits> = {}): Connection {
  return new Connection({ context: world.context(limits), transport: network, addresses: [ADDRESS], log: silentLog });
}

/** A provider that dialled in to a scripted dispatcher. */
export async function bench(limits: Partial<SessionLimits> = {}): Promise<Bench> {
  const world = new MemoryWorld();
  const network = new MemoryNetwork(world);
  const dispatcher = new ScriptedDispatcher(world, limits);
  await network.listen(ADDRESS, dispatcher.host);
  const connection = dial(world, network);
  const provider = new Provider();
  provider.attach(connection);
  await world.settle();
  return { world, network, dispatcher, connection, provider };
}
