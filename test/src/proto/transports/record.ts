import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Link, LinkEvents, Listener } from '@trunkline/proto';
import { ZmqTransport, type ZmqTransportOptions } from '@trunkline/proto/zmq';
import { type TransportOptions, ZmtpTransport } from '@trunkline/proto/zmtp';
import { until } from '../../support/wait.js';

interface Kinds {
  zmq: { made: ZmqTransport; options: ZmqTransportOptions };
  zmtp: { made: ZmtpTransport; options: TransportOptions };
}
/** ZeroMQ's library, or its protocol on sockets of Node. */
export type Kind = keyof Kinds;
const kinds: readonly Kind[] = ['zmtp', 'zmq'];

export const classNames: Readonly<{ [K in Kind]: string }> = { zmq: 'ZmqTransport', zmtp: 'ZmtpTransport' };

/** A test of each kind. */
export function testKinds(name: string, run: (t: TestContext, kind: Kind) => Promise<void> | void): void {
  for (const kind of kinds) test(`${name} [${kind}]`, (t) => run(t, kind));
}

/** A test of each kind that listens with each kind that dials. */
export function testEnds(name: string, run: (t: TestContext, listens: Kind, dials: Kind) => Promise<void>): void {
  for (const listens of kinds)
    for (const dials of kinds) test(`${name} [${listens} listens, ${dials} dials]`, (t) => run(t, listens, dials));
}

/** A transport that the end of the test closes. */
export function transport<K extends Kind>(
  t: TestContext,
  kind: K,
  options: Kinds[K]['options'] = {},
): Kinds[K]['made'] {
  const made = kind === 'zmq' ? new ZmqTransport(options) : new ZmtpTransport(options);
  t.after(() => made.close());
  return made;
}

/** A listener, and a link to it that is up. */
export interface Ends {
  readonly listening: ZmqTransport | ZmtpTransport;
  readonly dialling: ZmqTransport | ZmtpTransport;
  readonly server: Record;
  readonly client: Record;
  readonly listener: Listener;
  readonly link: Link;
}

export async function connected(
  t: TestContext,
  listens: Kind,
  dials: Kind,
  more: { listening?: TransportOptions; dialling?: TransportOptions; handle?: Record['handle'] } = {},
): Promise<Ends> {
  const listening = transport(t, listens, more.listening);
  const dialling = transport(t, dials, more.dialling);
  const [server, client] = [new Record(), new Record()];
  if (more.handle !== undefined) server.handle = more.handle;
  const listener = await listening.listen('tcp://127.0.0.1:0', server);
  const link = dialling.dial(listener.address, client);
  await until(() => client.up, 'the link is up');
  return { listening, dialling, server, client, listener, link };
}

/** A folder that the end of the test removes. */
export async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'trunkline-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** Hears of links and keeps what it hears. */
export class Record implements LinkEvents {
  readonly batches: Uint8Array[] = [];
  readonly links: Link[] = [];
  readonly told: string[] = [];
  readonly steps: number[] = [];
  suspects = 0;
  /** What to do with a batch besides keeping it. */
  handle: (link: Link, batch: Uint8Array) => void = () => {};
  #inStep = 0;

  onBatch(link: Link, batch: Uint8Array): void {
    if (!this.links.includes(link)) this.links.push(link);
    this.batches.push(batch);
    this.#inStep++;
    this.handle(link, batch);
  }

  onUp(): void {
    this.told.push('up');
  }

  onDown(_link: Link, reason: string): void {
    this.told.push(`down: ${reason}`);
  }

  onSuspect(): void {
    this.suspects++;
  }

  onStepEnd(): void {
    this.steps.push(this.#inStep);
    this.#inStep = 0;
  }

  get up(): boolean {
    return this.told.at(-1) === 'up';
  }

  get numbers(): number[] {
    return this.batches.map(numberIn);
  }
}

/** A batch that begins with a number. */
export function numbered(number: number, bytes = 8): Uint8Array {
  const batch = new Uint8Array(bytes);
  new DataView(batch.buffer).setUint32(0, number, true);
  return batch;
}

export function numberIn(batch: Uint8Array): number {
  return new DataView(batch.buffer, batch.byteOffset).getUint32(0, true);
}

export const echo = (link: Link, batch: Uint8Array): void => link.send(batch);
