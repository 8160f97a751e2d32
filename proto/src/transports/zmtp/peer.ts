import { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';
import { guarded, receiverFailed } from '../guarded.js';
import type { Settings } from '../settings.js';
import { type FrameOwner, FrameReader } from './frames.js';
import {
  GREETING_BYTES,
  greeting,
  greetingFault,
  LONG,
  pongFrame,
  readCommand,
  readyFault,
  readyFrame,
  type SocketType,
} from './handshake.js';
import type { Step } from './step.js';

/** Who hears of a connection. */
export interface PeerOwner {
  /** The handshake is done: from now on batches go both ways. */
  onReady(peer: Peer): void;
  onMessage(peer: Peer, batch: Uint8Array): void;
  /** The connection is over; called once, and last. `fault` says why this end broke it off, if it did. */
  onGone(peer: Peer, fault: string | undefined): void;
}

/** Up to this many bytes a batch is copied behind the header of its frame: cheaper than writing two pieces. */
const COPIED = 16 * 1024;
const SHORT = 255;
/** Bytes that wait for the end of the running code at most, and a batch more. */
const MOST_GATHERED = 256 * 1024;
/**
 * Of its greeting, whoever dials sends signature and version first and the rest behind the peer's: a listener that wants
 * security closes at the first other mechanism that it sees, and nobody would hear why.
 */
const FIRST_GREETING = 11;
/** With more than this waiting for a peer it gets no PONG, bytes: who asks and does not read is left alone. */
const MOST_WAITING = 64 * 1024;
/** With more than this waiting, bytes, it is no stranger's turn to ask again. */
const MOST_UNREAD = 1024 * 1024;

/** One connection that speaks ZMTP, at either end. */
export class Peer implements FrameOwner {
  ready = false;
  /** Nothing more is read. */
  done = false;
  /** The step goes on for too long: nothing more is read before the next. */
  private overdue = false;
  private told = false;
  private fault: string | undefined;
  private readonly greeting = Buffer.alloc(GREETING_BYTES);
  private greeted = 0;
  private corked = false;
  private readonly reader: FrameReader;
  /** Bytes that wait for `uncork`. */
  private gathered = 0;
  private readonly uncork = () => {
    this.corked = false;
    this.gathered = 0;
    this.socket.uncork();
  };

  constructor(
    private readonly socket: Socket,
    private readonly type: SocketType,
    private readonly owner: PeerOwner,
    private readonly step: Step,
    private readonly settings: Settings,
  ) {
    this.reader = new FrameReader(this, settings.maxBatchBytes);
    socket.on('data', (chunk: Buffer) => this.receive(chunk));
    socket.on('error', () => {});
    socket.on('close', () => this.gone());
    socket.write(type === 'ROUTER' ? greeting : greeting.subarray(0, FIRST_GREETING));
  }

  /**
   * Hands a batch to the system at the end of the code that runs now, together with others for this peer, or at once
   * where they are much. A connection that is over drops it.
   */
  send(batch: Uint8Array): void {
    const { socket } = this;
    if (!socket.writable) {
      this.settings.counters.droppedSends++;
      return;
    }
    if (!this.corked) {
      this.corked = true;
      socket.cork();
      queueMicrotask(this.uncork);
    }
    this.write(batch, batch.length);
    this.gathered += batch.length;
    if (this.gathered >= MOST_GATHERED) this.uncork();
  }

  private write(batch: Uint8Array, length: number): void {
    if (length > COPIED) {
      const header = Buffer.allocUnsafe(9);
      writeHeader(header, length);
      this.socket.write(header);
      this.socket.write(batch);
      return;
    }
    const start = length > SHORT ? 9 : 2;
    const frame = Buffer.allocUnsafe(start + length);
    writeHeader(frame, length);
    frame.set(batch, start);
    this.socket.write(frame);
  }

  /** Something came of the peer's greeting. */
  get begun(): boolean {
    return this.greeted > 0;
  }

  /** Ends the connection once what was sent has left, after `lingerMs` in any case. Nobody is told of it. */
  end(lingerMs: number): void {
    this.done = true;
    this.told = true;
    const { socket } = this;
    if (socket.destroyed) return;
    socket.end();
    socket.resume();
    const limit = setTimeout(() => socket.destroy(), lingerMs).unref();
    socket.once('close', () => clearTimeout(limit));
  }

  /** Ends the connection at once: the peer breaks the protocol, or takes too long. */
  refuse(reason: string): void {
    this.fault ??= reason;
    this.done = true;
    this.socket.destroy();
  }

  /** Whether it leaves unread what it was sent: more answers would only take memory. */
  get unread(): boolean {
    return this.socket.writableLength > MOST_UNREAD;
  }

  onMessage(batch: Uint8Array): void {
    const { step } = this;
    step.begin();
    try {
      this.owner.onMessage(this, batch);
    } catch (error) {
      receiverFailed(this.settings, error);
    }
    step.took(batch.length);
    if (step.overdue) this.overdue = true;
  }

  get halted(): boolean {
    return this.done || this.overdue;
  }

  onForeign(): void {
    this.settings.counters.droppedFrames++;
  }

  onCommand(body: Buffer): void {
    const command = readCommand(body);
    if (!this.ready) {
      const fault = readyFault(command, this.type);
      if (fault !== undefined) this.refuse(fault);
      else {
        this.ready = true;
        guarded(this.settings, () => this.owner.onReady(this));
      }
    } else if (command?.name === 'PING' && this.socket.writableLength < MOST_WAITING) {
      this.socket.write(pongFrame(command.data.subarray(2)));
    }
  }

  onFault(reason: string): void {
    this.refuse(reason);
  }

  /** Takes what was read. */
  receive(chunk: Buffer): void {
    if (this.done) return;
    const start = this.greeted < GREETING_BYTES ? this.greet(chunk) : 0;
    if (this.done) return;
    const taken = start + this.reader.read(start === 0 ? chunk : chunk.subarray(start));
    if (this.done) return;
    if (this.overdue) this.pause(chunk.subarray(taken));
  }

  /** Takes what belongs to the greeting; returns how many bytes that is. */
  private greet(chunk: Buffer): number {
    const taken = chunk.copy(this.greeting, this.greeted);
    this.greeted += taken;
    const fault = greetingFault(this.greeting.subarray(0, this.greeted));
    if (fault !== undefined) this.refuse(fault);
    else if (this.greeted === GREETING_BYTES) {
      if (this.type === 'DEALER') this.socket.write(greeting.subarray(FIRST_GREETING));
      this.socket.write(readyFrame(this.type));
    }
    return taken;
  }

  /** Lets timers and other connections have their turn before the rest of a chunk. */
  private pause(rest: Buffer): void {
    this.socket.pause();
    // after the pause: what is put back into a socket that flows comes again at once
    if (rest.length > 0) this.socket.unshift(rest);
    this.step.later(() => {
      this.overdue = false;
      this.socket.resume();
    });
  }

  private gone(): void {
    this.done = true;
    if (this.told) return;
    this.told = true;
    guarded(this.settings, () => this.owner.onGone(this, this.fault));
  }
}

function writeHeader(frame: Buffer, length: number): void {
  if (length > SHORT || frame.length === 9) {
    frame[0] = LONG;
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 1);
    frame.writeUInt32BE(length >>> 0, 5);
  } else {
    frame[0] = 0;
    frame[1] = length;
  }
}
