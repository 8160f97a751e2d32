import { TrunklineError } from './errors.js';
import { trunkline } from './generated/schema.js';
import { bodyStart, readU32 } from './header.js';
import { keyBytes, paramsKey } from './params.js';
import { FieldReader, FieldWriter } from './wire-fields.js';

/** Decodes one kind of payload; absent fields read as the defaults of proto3. */
export interface Readable<T> {
  decode(bytes: Uint8Array): T;
  /** The same from a part of a batch, where it is one of the usual ones; otherwise undefined. */
  read?(batch: Uint8Array, start: number, end: number): T | undefined;
}

export interface Codec<T> extends Readable<T> {
  encode(value: Partial<T>): Uint8Array;
}

interface Generated {
  encode(message: never): { finish(): Uint8Array };
  decode(bytes: Uint8Array): object;
}

/**
 * `defaults` names every field with its default, so that a decoded payload is a plain object with own fields of one
 * shape. Numbers are numbers: 64-bit fields here hold integers ≤ 2^53-1.
 */
function codec<T extends object>(type: Generated, defaults: T): Codec<T> {
  const fields = Object.keys(defaults) as (keyof T & string)[];
  return {
    encode: (value) => type.encode(value as never).finish(),
    decode(bytes) {
      const message = type.decode(bytes) as Record<string, unknown>;
      const result = { ...defaults } as Record<string, unknown>;
      for (const field of fields) {
        if (Object.hasOwn(message, field) && message[field] !== null) result[field] = plain(message[field]);
      }
      return result as T;
    },
  };
}

/** A Long from protobufjs as a number; beyond 2^53-1 it saturates, which no honest peer sends. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null || !('low' in value)) return value;
  const { low, high } = value as { low: number; high: number };
  return Math.min(Number.MAX_SAFE_INTEGER, (low >>> 0) + (high >>> 0) * 4294967296);
}

const none: Uint8Array = new Uint8Array(0);

export const hello = codec(trunkline.Hello as never, {
  nonce: none,
  instance: none,
  name: '',
  heartbeatMs: 0,
  maxMessage: 0,
  credit: 0,
  token: '',
});
export type Hello = ReturnType<typeof hello.decode>;

export const welcome = codec(trunkline.Welcome as never, {
  nonce: none,
  instance: none,
  name: '',
  heartbeatMs: 0,
  maxMessage: 0,
  credit: 0,
});
export type Welcome = ReturnType<typeof welcome.decode>;

export const heartbeat = codec(trunkline.Heartbeat as never, { batches: 0 });
export const bye = codec(trunkline.Bye as never, { code: '', message: '', retryable: false });
export const credit = codec(trunkline.Credit as never, { limit: 0 });

/** Values of `Start.from`. */
export const StartFrom = { KEPT: 0, LIVE: 1, AFTER: 2 } as const;

export interface Start {
  from: number;
  sequence: number;
  epoch: Uint8Array;
}

interface RequestFields {
  request: number;
  params: Uint8Array;
  filter: string;
  returnHandler: string;
  group: string;
  rate: number;
  overflow: string;
  start: Start | undefined;
  window: number;
}
const requestFields = codec<RequestFields>(trunkline.Request as never, {
  request: 0,
  params: none,
  filter: '',
  returnHandler: '',
  group: '',
  rate: 0,
  overflow: '',
  start: undefined,
  window: 0,
});
export interface Request extends RequestFields {
  start: Start;
}
const KEPT: Start = Object.freeze({ from: StartFrom.KEPT, sequence: 0, epoch: none });
const reader = new FieldReader();
const writer = new FieldWriter();

/** A payload of `length` bytes, valid until the next one is written: what comes by the hundred thousand takes no memory. */
export interface Written {
  bytes: Uint8Array;
  length: number;
}
const written: Written = { bytes: none, length: 0 };

function inScratch(): Written {
  written.bytes = writer.scratch;
  written.length = writer.length;
  return written;
}

function whole(bytes: Uint8Array): Written {
  written.bytes = bytes;
  written.length = bytes.length;
  return written;
}

/** Runs `read` over the fields; undefined where one of them is not as usual. */
function quickly<T>(batch: Uint8Array, start: number, end: number, read: () => T | undefined): T | undefined {
  reader.begin(batch, start, end);
  const result = read();
  reader.finish();
  return reader.odd ? undefined : result;
}

function readStart(): Start | undefined {
  const end = reader.length() + reader.position;
  const start = { from: 0, sequence: 0, epoch: none };
  while (reader.more && reader.position < end) {
    const tag = reader.tag();
    if (tag === 0x08) start.from = reader.u32();
    else if (tag === 0x10) start.sequence = reader.varint();
    else if (tag === 0x1a) start.epoch = reader.view();
    else reader.odd = true;
  }
  if (reader.position !== end) reader.odd = true;
  return start;
}

function readRequest(): Request {
  const fields: Request = {
    request: 0,
    params: none,
    filter: '',
    returnHandler: '',
    group: '',
    rate: 0,
    overflow: '',
    start: KEPT,
    window: 0,
  };
  while (reader.more) {
    const tag = reader.tag();
    if (tag === 0x12) fields.params = reader.view();
    else readField(fields, tag);
  }
  return fields;
}

function readKeyedRequest(): KeyedRequest {
  const fields: KeyedRequest = {
    request: 0,
    params: none,
    filter: '',
    returnHandler: '',
    group: '',
    rate: 0,
    overflow: '',
    start: KEPT,
    window: 0,
    key: '',
  };
  while (reader.more) {
    const tag = reader.tag();
    if (tag === 0x12) fields.key = reader.key();
    else readField(fields, tag);
  }
  return fields;
}

/** Any field but the params. */
function readField(fields: Request, tag: number): void {
  if (tag === 0x08) fields.request = reader.u32();
  else if (tag === 0x1a) fields.filter = reader.text();
  else if (tag === 0x22) fields.returnHandler = reader.text();
  else if (tag === 0x2a) fields.group = reader.text();
  else if (tag === 0x30) fields.rate = reader.u32();
  else if (tag === 0x3a) fields.overflow = reader.text();
  else if (tag === 0x42 && fields.start === KEPT) fields.start = readStart() ?? KEPT;
  else if (tag === 0x48) fields.window = reader.u32();
  else reader.odd = true;
}

/** What a subscription asks for; params that are ASCII may be text. */
export interface Asked {
  readonly params: Uint8Array | string;
  readonly filter: string;
  readonly returnHandler: string;
  readonly group: string;
  readonly rate: number;
  readonly overflow: string;
}

/** As `request.encode`. */
export function writeRequest(request: number, asked: Asked, start: Start): Written {
  fillRequest(request, asked, start);
  if (!writer.odd) return inScratch();
  const { params } = asked;
  const bytes = typeof params === 'string' ? keyBytes(params) : params;
  return whole(requestFields.encode({ ...asked, request, params: bytes, start }));
}

function fillRequest(request: number, asked: Asked, start: Start | undefined): void {
  const { params, filter, returnHandler, group, rate, overflow } = asked;
  writer.begin().number(0x08, request);
  if (typeof params === 'string') writer.text(0x12, params);
  else writer.block(0x12, params);
  writer.text(0x1a, filter).text(0x22, returnHandler).text(0x2a, group).number(0x30, rate).text(0x3a, overflow);
  if (start === undefined) return;
  const from = writer.open(0x42);
  writer.number(0x08, start.from).number(0x10, start.sequence).block(0x1a, start.epoch).close(from);
}

export const request: Codec<Request> = {
  encode(value) {
    const { request = 0, params = none, filter = '', returnHandler = '', group = '', rate = 0 } = value;
    const { overflow = '', start, window = 0 } = value;
    fillRequest(request, { params, filter, returnHandler, group, rate, overflow }, start);
    writer.number(0x48, window);
    return writer.odd ? requestFields.encode(value) : writer.done();
  },
  decode(bytes) {
    const fields = requestFields.decode(bytes);
    const given = fields.start as unknown as trunkline.Start.$Properties | undefined;
    if (given === undefined) return { ...fields, start: KEPT };
    const read = { from: given.from ?? 0, sequence: plain(given.sequence ?? 0) as number, epoch: given.epoch ?? none };
    return { ...fields, start: read };
  },
  read: (batch, start, end) => quickly(batch, start, end, readRequest),
};

/** A request with its params as a key (`paramsKey`) as well: `params` is empty where the key was read at once. */
export interface KeyedRequest extends Request {
  key: string;
}

/** A REQUEST for a stream. */
export const keyedRequest: Readable<KeyedRequest> = {
  decode(bytes) {
    const fields = request.decode(bytes);
    return { ...fields, key: paramsKey(fields.params) };
  },
  read: (batch, start, end) => quickly(batch, start, end, readKeyedRequest),
};

const upstreamFields = codec(trunkline.Upstream as never, { params: none });
export const upstream: Codec<{ params: Uint8Array }> = {
  ...upstreamFields,
  read: (batch, start, end) =>
    quickly(batch, start, end, () => {
      const fields = { params: none };
      while (reader.more) {
        if (reader.tag() === 0x0a) fields.params = reader.view();
        else reader.odd = true;
      }
      return fields;
    }),
};

/** As `upstream.encode` of the bytes that the key stands for (`paramsKey`). */
export function writeUpstream(key: string): Written {
  writer.begin().text(0x0a, key, true);
  return writer.odd ? whole(upstreamFields.encode({ params: keyBytes(key) })) : inScratch();
}

/** The params of an `upstream`, as a key (`paramsKey`). */
export const upstreamKey: Readable<{ key: string }> = {
  decode: (bytes) => ({ key: paramsKey(upstreamFields.decode(bytes).params) }),
  read: (batch, start, end) => quickly(batch, start, end, readUpstreamKey),
};

function readUpstreamKey(): { key: string } {
  const fields = { key: '' };
  while (reader.more) {
    if (reader.tag() === 0x0a) fields.key = reader.key();
    else reader.odd = true;
  }
  return fields;
}

const cancelFields = codec(trunkline.Cancel as never, { request: 0 });
export const cancel: Codec<{ request: number }> = {
  encode(value) {
    writer.begin().number(0x08, value.request ?? 0);
    return writer.odd ? cancelFields.encode(value) : writer.done();
  },
  decode: cancelFields.decode,
  read: (batch, start, end) =>
    quickly(batch, start, end, () => {
      const fields = { request: 0 };
      while (reader.more) {
        if (reader.tag() === 0x08) fields.request = reader.u32();
        else reader.odd = true;
      }
      return fields;
    }),
};

const acceptedFields = codec(trunkline.Accepted as never, {
  request: 0,
  epoch: none,
  snapshot: false,
  resumed: false,
  status: '',
});
export type Accepted = ReturnType<typeof acceptedFields.decode>;

function readAccepted(): Accepted {
  const fields: Accepted = { request: 0, epoch: none, snapshot: false, resumed: false, status: '' };
  while (reader.more) {
    const tag = reader.tag();
    if (tag === 0x08) fields.request = reader.u32();
    else if (tag === 0x12) fields.epoch = reader.view();
    else if (tag === 0x18) fields.snapshot = reader.varint() !== 0;
    else if (tag === 0x20) fields.resumed = reader.varint() !== 0;
    else if (tag === 0x2a) fields.status = reader.text();
    else reader.odd = true;
  }
  return fields;
}

function fillAccepted({
  request = 0,
  epoch = none,
  snapshot = false,
  resumed = false,
  status = '',
}: Partial<Accepted>) {
  writer.begin().number(0x08, request).block(0x12, epoch).flag(0x18, snapshot).flag(0x20, resumed);
  writer.text(0x2a, status);
}

/** As `accepted.encode`. */
export function writeAccepted(value: Accepted): Written {
  fillAccepted(value);
  return writer.odd ? whole(acceptedFields.encode(value)) : inScratch();
}

export const accepted: Codec<Accepted> = {
  encode(value) {
    fillAccepted(value);
    return writer.odd ? acceptedFields.encode(value) : writer.done();
  },
  decode: acceptedFields.decode,
  read: (batch, start, end) => quickly(batch, start, end, readAccepted),
};

export const refused = codec(trunkline.Refused as never, {
  request: 0,
  code: '',
  message: '',
  retryable: false,
  position: 0,
});
export type Refused = ReturnType<typeof refused.decode>;
export const end = codec(trunkline.End as never, { code: '', message: '', exit: undefined as number | undefined });
export const status = codec(trunkline.Status as never, { state: '', reason: '' });
export const gap = codec(trunkline.Gap as never, { count: 0, first: 0, last: 0, reason: '' });
export type Gap = ReturnType<typeof gap.decode>;
export const offer = codec(trunkline.Offer as never, { codes: [] as number[], ranges: [] as number[] });

/** Publishes that were refused: `count` numbers from `first` on. */
export interface PublishRefusal {
  first: number;
  count: number;
  code: string;
  message: string;
  retryable: boolean;
}
const publishedFields = codec(trunkline.Published as never, {
  stored: [] as number[],
  refused: [] as Partial<PublishRefusal>[],
});
export interface Published {
  /** Triples: first publish number, count, sequence of the first. */
  stored: number[];
  refused: PublishRefusal[];
}
const NO_REFUSAL: PublishRefusal = { first: 0, count: 0, code: '', message: '', retryable: false };
export const published: Codec<Published> = {
  encode: (value) => publishedFields.encode(value),
  decode(bytes) {
    const { stored, refused } = publishedFields.decode(bytes);
    return { stored, refused: refused.map(refusal) };
  },
};

function refusal(fields: Partial<PublishRefusal>): PublishRefusal {
  const { first, count, ...rest } = { ...NO_REFUSAL, ...fields };
  return { ...rest, first: plain(first) as number, count: plain(count) as number };
}

export const settle = codec(trunkline.Settle as never, { call: 0, ranges: [] as number[], delayMs: 0, reason: '' });
export type Settle = ReturnType<typeof settle.decode>;
export const settled = codec(trunkline.Settled as never, { call: 0, failed: [] as number[], code: '', message: '' });
export type Settled = ReturnType<typeof settled.decode>;

/**
 * The payload of the message at `at`.
 * @throws TrunklineError BATCH_INVALID: the payload is not what its type says; concerns this message only
 */
export function readPayload<T>(kind: Readable<T>, batch: Uint8Array, at: number): T {
  const start = bodyStart(batch, at);
  const end = at + readU32(batch, at);
  try {
    return kind.read?.(batch, start, end) ?? kind.decode(batch.subarray(start, end));
  } catch (cause) {
    throw new TrunklineError('BATCH_INVALID', `payload cannot be decoded: ${(cause as Error).message}`, { cause });
  }
}
