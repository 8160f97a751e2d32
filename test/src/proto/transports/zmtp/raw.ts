import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { until } from '../../../support/wait.js';

/* ZMTP 3.1 by hand: what a peer may send, rightly or not. */

export const MORE = 1;
export const LONG = 2;
export const COMMAND = 4;

export function greeting(mechanism = 'NULL', version = [3, 1]): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.set([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, ...version]);
  bytes.write(mechanism, 12, 20, 'latin1');
  return bytes;
}

/** A frame; with 8 bytes of length where its flags say so or its body is long. */
export function frame(flags: number, body: Uint8Array | string): Buffer {
  const bytes = Buffer.from(body as string, 'latin1');
  if (bytes.length < 256 && (flags & LONG) === 0) return Buffer.concat([Buffer.of(flags, bytes.length), bytes]);
  return Buffer.concat([longHeader(flags, BigInt(bytes.length)), bytes]);
}

export function longHeader(flags: number, length: bigint): Buffer {
  const header = Buffer.alloc(9);
  header[0] = flags | LONG;
  header.writeBigUInt64BE(length, 1);
  return header;
}

export function command(name: string, data: Uint8Array | string = ''): Buffer {
  return frame(COMMAND, commandBody(name, data));
}

export function commandBody(name: string, data: Uint8Array | string = ''): Buffer {
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name, 'latin1'), Buffer.from(data as string, 'latin1')]);
}

export function property(name: string, value: string): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(value.length);
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name), size, Buffer.from(value)]);
}

export const ready = (type: string): Buffer => command('READY', property('Socket-Type', type));

/** A PING whose context is answered; its first two bytes are a time to live. */
export const ping = (context: string): Buffer => command('PING', `\0\0${context}`);

/** One end of a connection that does as it is told, and keeps what it hears. */
export class Raw {
  private readonly chunks: Buffer[] = [];
  heardBytes = 0;
  closed = false;

  constructor(readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
    });
    socket.on('data', (chunk: Buffer) => {
      this.chunks.push(chunk);
      this.heardBytes += chunk.length;
    });
  }

  say(...parts: Uint8Array[]): void {
    this.socket.write(Buffer.concat(parts));
  }

  get heard(): Buffer {
    const all = Buffer.concat(this.chunks);
    this.chunks.splice(0, this.chunks.length, all);
    return all;
  }

  /** The frames heard so far behind the greeting and READY, those that came whole. */
  get frames(): { flags: number; body: Buffer }[] {
    const { heard } = this;
    const found: { flags: number; body: Buffer }[] = [];
    for (let at = 64; at + 2 <= heard.length; ) {
      const flags = heard[at]!;
      const long = (flags & LONG) !== 0;
      if (long && at + 9 > heard.length) break;
      const start = at + (long ? 9 : 2);
      const end = start + (long ? Number(heard.readBigUInt64BE(at + 1)) : heard[at + 1]!);
      if (end > heard.length) break;
      found.push({ flags, body: heard.subarray(start, end) });
      at = end;
    }
    return found.slice(1);
  }
}

/** A stranger at a listener, connected. */
export async function knock(t: TestContext, address: string, more: Partial<NetConnectOpts> = {}): Promise<Raw> {
  const place = address.startsWith('ipc:')
    ? { path: address.slice('ipc://'.length) }
    : { host: '127.0.0.1', port: Number(address.split(':').at(-1)) };
  const socket = connect({ ...place, ...more } as NetConnectOpts);
  t.after(() => socket.destroy());
  const raw = new Raw(socket);
  await once(socket, 'connect');
  return raw;
}

/** One who shook hands as a DEALER. */
export async function dealer(t: TestContext, address: string): Promise<Raw> {
  const raw = await knock(t, address);
  raw.say(greeting(), ready('DEALER'));
  await until(() => raw.heardBytes > 64, 'the listener is ready');
  return raw;
}

/** A listener that hands each connection to `meet`, with its number from 0. */
export async function pretend(t: TestContext, meet: (raw: Raw, count: number) => void): Promise<string> {
  let count = 0;
  const server = createServer((socket) => {
    t.after(() => socket.destroy());
    meet(new Raw(socket), count++);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
