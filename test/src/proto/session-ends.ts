import {
  encodeMessage,
  Flag,
  type Header,
  type LinkEvents,
  OFFSET,
  payload,
  readU32,
  Session,
  type SessionContext,
  type SessionEvents,
  type SessionLimits,
  singleMessage,
  Type,
  typeName,
} from '@trunkline/proto';
import { type MemoryLink, MemoryWorld, memoryPair } from '../support/memory-link.js';

/** An end of a link that does only what a test says, and notes the batches it gets. */
export class Scripted {
  readonly batches: Uint8Array[] = [];
  link!: MemoryLink;
  down = 0;
  readonly events: LinkEvents = {
    onBatch: (_link, batch) => this.batches.push(batch),
    onDown: () => this.down++,
  };

  send(header: Header, bytes?: Uint8Array): void {
    this.link.send(singleMessage(header, bytes));
  }

  /** Names of the messages that came since the last call. */
  take(): string[] {
    return this.takeMessages().map(({ type }) => type);
  }

  takeMessages(): { type: string; batch: Uint8Array; at: number }[] {
    const messages = [];
    for (const batch of this.batches.splice(0)) {
      for (let at = 0; at < batch.length; at += readU32(batch, at)) {
        messages.push({ type: typeName(batch[at + OFFSET.type]!), batch, at });
      }
    }
    return messages;
  }

  /** The payloads of one type that came since the last call; the others are forgotten. */
  payloads<T>(type: number, codec: payload.Codec<T>): T[] {
    return this.takeMessages()
      .filter((each) => each.type === typeName(type))
      .map(({ batch, at }) => payload.readPayload(codec, batch, at));
  }
}

/** A session at one end of a link, a scripted peer at the other, and what the session told. */
export class Pair {
  readonly peer = new Scripted();
  readonly told: string[] = [];
  readonly session: Session;
  readonly context: SessionContext;
  closed: { code: string; retryable: boolean; message: string } | undefined;
  on: Partial<SessionEvents> = {};

  constructor(
    readonly world = new MemoryWorld(),
    limits: Partial<SessionLimits> = {},
    more: Partial<SessionContext> = {},
  ) {
    this.context = { ...world.context(limits), ...more };
    const { flusher } = this.context;
    const events: LinkEvents = {
      onBatch: (_link, batch) => {
        flusher.hold();
        this.session.receive(batch);
      },
      onDown: (_link, reason) => this.session.down(reason),
      onStepEnd: () => flusher.release(),
    };
    const [own, other] = memoryPair(world, events, this.peer.events);
    this.peer.link = other;
    this.session = Session.initiate(own, this.context, this.events());
  }

  private events(): SessionEvents {
    return {
      onOpen: (session) => {
        this.told.push('open');
        this.on.onOpen?.(session);
      },
      onControl: (session, type, batch, at) => {
        this.told.push(typeName(type));
        this.on.onControl?.(session, type, batch, at);
      },
      onData: (session, batch, start, end, count) => {
        this.told.push(`data ${count}`);
        this.on.onData?.(session, batch, start, end, count);
      },
      onCredit: (session) => {
        this.told.push(`credit ${session.credit}`);
        this.on.onCredit?.(session);
      },
      onClosed: (session, { code, retryable, message }) => {
        this.told.push('closed');
        this.closed = { code, retryable, message };
        this.on.onClosed?.(session, { code, retryable, message } as never);
      },
    };
  }

  welcome(fields: Partial<payload.Welcome> = {}): void {
    const defaults = { nonce: this.session.nonce, instance: new Uint8Array([1]), heartbeatMs: 1000, maxMessage: 65536 };
    this.peer.send({ type: Type.WELCOME }, payload.welcome.encode({ ...defaults, credit: 1000, ...fields }));
  }

  /** Opens the session and forgets what both ends saw until then. */
  async open(fields: Partial<payload.Welcome> = {}): Promise<this> {
    this.welcome(fields);
    await this.world.settle();
    this.peer.batches.length = 0;
    this.told.length = 0;
    return this;
  }

  beat(batches: number): void {
    this.peer.send({ type: Type.HEARTBEAT }, payload.heartbeat.encode({ batches }));
  }

  credit(limit: number): void {
    this.peer.send({ type: Type.CREDIT }, payload.credit.encode({ limit }));
  }
}

export const response = (body: string, final = false, line = 1): Uint8Array =>
  encodeMessage({ type: Type.RESPONSE, code: 1, line, flags: final ? Flag.FINAL : 0 }, body);

/** Several messages as one batch. */
export function batchOf(...messages: Uint8Array[]): Uint8Array {
  const batch = new Uint8Array(messages.reduce((sum, message) => sum + message.length, 0));
  let at = 0;
  for (const message of messages) {
    batch.set(message, at);
    at += message.length;
  }
  return batch;
}
