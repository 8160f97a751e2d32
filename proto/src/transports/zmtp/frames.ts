import { Buffer } from 'node:buffer';
import { COMMAND, LONG, MAX_COMMAND, MORE } from './handshake.js';

/** Who hears of frames. */
export interface FrameOwner {
  /** A whole message of one frame. The bytes are its own or a view of what was received, and nobody else writes them. */
  onMessage(batch: Uint8Array): void;
  /** A message of several frames, which no batch is; it was read and is gone. */
  onForeign(): void;
  onCommand(body: Buffer): void;
  /** What was sent breaks the protocol; nothing more may be read. */
  onFault(reason: string): void;
  /** True where nothing more is wanted now. */
  readonly halted: boolean;
  /** The handshake is done: before, only commands may come. */
  readonly ready: boolean;
}

/** A header has at most a byte of flags and eight of length. */
const MOST_HEADER = 9;
/** Memory for a long message that has only begun; it grows as the message comes, so that a length alone takes none. */
const FIRST_ROOM = 256 * 1024;

/**
 * Cuts a stream of bytes into frames. A message that lies within one chunk is a view of it; only one that several chunks
 * share is copied, once.
 */
export class FrameReader {
  private readonly header = new Uint8Array(MOST_HEADER);
  private headerBytes = 0;
  /** What has come of a frame that a chunk did not hold whole. */
  private body: Uint8Array | undefined;
  private filled = 0;
  private size = 0;
  private flags = 0;
  /** Bytes of a message of several frames, so far; and whether the last frame said that more belong to it. */
  private foreign = 0;
  private inForeign = false;

  constructor(
    private readonly owner: FrameOwner,
    private readonly maxBytes: number,
  ) {}

  /** Takes a chunk, up to where the owner halts. Returns how many bytes were taken. */
  read(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && !this.owner.halted) {
      if (this.body !== undefined) {
        at = this.fill(this.body, chunk, at);
        continue;
      }
      const start = this.readHeader(chunk, at);
      if (start < 0) return chunk.length;
      const fault = this.fault();
      if (fault !== undefined) {
        this.owner.onFault(fault);
        return chunk.length;
      }
      at = start + this.size;
      if (at <= chunk.length) this.whole(chunk.buffer, chunk.byteOffset + start);
      else {
        this.body = new Uint8Array(Buffer.allocUnsafeSlow(Math.min(this.size, FIRST_ROOM)).buffer);
        at = start;
      }
    }
    return at;
  }

  /** What is wrong with the header that was read. */
  private fault(): string | undefined {
    if ((this.flags & ~(MORE | LONG | COMMAND)) !== 0) return 'it sends frames of an unknown kind';
    // a command may come between the frames of a message
    const isCommand = (this.flags & COMMAND) !== 0;
    if (!isCommand && !this.owner.ready) return 'it breaks off the handshake';
    const size = isCommand ? this.size : this.size + this.foreign;
    const most = isCommand ? MAX_COMMAND : this.maxBytes;
    return size > most ? `a message has more than ${most} bytes` : undefined;
  }

  /** Reads a header at `at`, begun in an earlier chunk or not; returns where its body begins, or -1 where more has to come. */
  private readHeader(chunk: Buffer, at: number): number {
    if (this.headerBytes === 0) {
      const flags = chunk[at]!;
      const length = flags & LONG ? MOST_HEADER : 2;
      if (chunk.length - at >= length) return this.headerRead(chunk, at, length);
    }
    while (at < chunk.length) {
      this.header[this.headerBytes++] = chunk[at++]!;
      const length = this.header[0]! & LONG ? MOST_HEADER : 2;
      if (this.headerBytes === length) {
        this.headerBytes = 0;
        this.headerRead(this.header, 0, length);
        return at;
      }
    }
    return -1;
  }

  private headerRead(bytes: Uint8Array, at: number, length: number): number {
    this.flags = bytes[at]!;
    if (length === 2) this.size = bytes[at + 1]!;
    else {
      this.size = 0;
      for (let index = at + 1; index < at + MOST_HEADER; index++) this.size = this.size * 256 + bytes[index]!;
    }
    return at + length;
  }

  private fill(body: Uint8Array, chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.size - this.filled);
    let room = body;
    if (this.filled + end - at > room.length) {
      const more = Math.min(this.size, Math.max(room.length * 2, this.filled + end - at));
      room = new Uint8Array(Buffer.allocUnsafeSlow(more).buffer);
      room.set(body.subarray(0, this.filled));
      this.body = room;
    }
    room.set(chunk.subarray(at, end), this.filled);
    this.filled += end - at;
    if (this.filled === this.size) {
      this.body = undefined;
      this.filled = 0;
      this.whole(room.buffer as ArrayBuffer, 0);
    }
    return end;
  }

  /** A frame is there. */
  private whole(buffer: ArrayBufferLike, offset: number): void {
    const { flags, size, inForeign } = this;
    if (flags & COMMAND) {
      this.owner.onCommand(Buffer.from(buffer as ArrayBuffer, offset, size));
      return;
    }
    this.inForeign = (flags & MORE) !== 0;
    if (this.inForeign) this.foreign += size;
    else if (inForeign) {
      this.foreign = 0;
      this.owner.onForeign();
    } else this.owner.onMessage(new Uint8Array(buffer, offset, size));
  }
}
