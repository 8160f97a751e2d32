import { readU32, Timer } from '@trunkline/proto';
import type { CachedChunk } from './chunk-cache.js';
import { damageOf } from './chunk-source.js';
import type { Group } from './group.js';
import { Ranges } from './ranges.js';

/** So much is on its way to the dead letter queue at a time; one letter always is. */
const LETTERS = 256;
const BYTES = 4 * 1024 * 1024;
/** When nothing could be brought there it is tried again after this, ms. */
const AGAIN = 1000;

/** Why a message goes to the dead letter queue, and how often it was delivered before. */
interface Letter {
  readonly count: number;
  readonly reason: string;
}

/** Brings messages of a group to the dead letter queue. */
export class Undertaker {
  /** In commits that are on their way: what the group's record says from then on is that they are done with. */
  readonly committing = new Ranges();
  private readonly waiting = new Map<number, Letter>();
  private letters = 0;
  private bytes = 0;
  private chunk: CachedChunk | undefined;
  private loading = false;
  private running = false;
  private closed = false;
  private readonly again = new Timer({ onTimer: () => this.run() });

  constructor(private readonly group: Group) {}

  /** Messages that are not there yet. */
  get size(): number {
    return this.waiting.size + this.letters;
  }

  add(sequence: number, count: number, reason: string): void {
    this.waiting.set(sequence, { count, reason });
    this.run();
  }

  private run(): void {
    if (this.running || this.loading || this.again.active || this.closed) return;
    this.running = true;
    // what is refused comes behind the others, and ends the run
    for (const [sequence, letter] of this.waiting) {
      if (this.letters >= LETTERS || (this.letters > 0 && this.bytes >= BYTES)) break;
      if (this.again.active || this.closed || !this.take(sequence, letter)) break;
    }
    this.running = false;
    if (this.size === 0) this.chunk = undefined;
  }

  /** Returns false where the message has to be read first. */
  private take(sequence: number, letter: Letter): boolean {
    const { group } = this;
    if (group.isDone(sequence)) {
      this.waiting.delete(sequence);
      return true;
    }
    if (group.queue.options.deadLetter === 0) {
      this.waiting.delete(sequence);
      group.buried(sequence);
      return true;
    }
    const chunk = this.chunkOf(sequence);
    if (chunk === undefined) return false;
    this.waiting.delete(sequence);
    this.send(chunk, sequence, letter);
    return true;
  }

  private send(chunk: CachedChunk, sequence: number, letter: Letter): void {
    const { group, committing } = this;
    const at = chunk.offsetOf(sequence);
    const size = readU32(chunk.bytes, at);
    this.letters++;
    this.bytes += size;
    const end = () => {
      this.letters--;
      this.bytes -= size;
      committing.remove(sequence, sequence);
    };
    group.queue.host.bury(
      group.queue,
      { ...letter, bytes: chunk.bytes, at, group: group.name, sequence },
      {
        // both are in one commit: after a kill the message is either there or here
        assigned: () => {
          committing.add(sequence, sequence);
          group.touch();
        },
        stored: () => {
          end();
          if (this.closed) return;
          group.buried(sequence);
          this.run();
        },
        refused: () => {
          end();
          this.waiting.set(sequence, letter);
          this.pause();
        },
      },
    );
  }

  private chunkOf(sequence: number): CachedChunk | undefined {
    const { queue } = this.group;
    const has = ({ first, last }: CachedChunk) => first <= sequence && last >= sequence;
    if (this.chunk === undefined || !has(this.chunk)) this.chunk = queue.chunks.find(sequence);
    if (this.chunk !== undefined) return this.chunk;
    this.loading = true;
    queue.chunks.load(sequence).then(
      (chunk) => {
        this.loading = false;
        this.chunk = chunk;
        if (chunk === undefined) this.lost(sequence);
        this.run();
      },
      (error: unknown) => {
        this.loading = false;
        if (damageOf(error) === undefined) this.pause();
        else this.lost(sequence);
        this.run();
      },
    );
    return undefined;
  }

  private lost(sequence: number): void {
    this.waiting.delete(sequence);
    if (!this.closed) this.group.moveUp(sequence, sequence, 'damaged');
  }

  private pause(): void {
    if (!this.closed) this.group.queue.timers.start(this.again, AGAIN);
  }

  close(): void {
    this.closed = true;
    this.group.queue.timers.stop(this.again);
  }
}
