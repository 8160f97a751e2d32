import { write } from 'node:fs';

/** Waiting bytes beyond which a writer should wait for room. */
const HIGH_WATER = 256 * 1024;
const RETRY_MS = 5;

/**
 * Writes to a file descriptor off the event loop, in order and whole, however slow the reader is: a blocked pipe must
 * neither stop heartbeats nor be cut at the exit (F101). A reader that goes away closes it without a word.
 */
export class Output {
  closed = false;
  private parts: (string | Uint8Array)[] = [];
  private size = 0;
  private writing = false;
  private waiters: (() => void)[] = [];
  /** Of what is being written, and of what comes behind it: told whether it was. */
  private current: Written | undefined;
  private following: Written | undefined;
  private onClosed: () => void = () => {};

  constructor(
    private readonly fd: number,
    private readonly failed: (error: Error) => void,
  ) {}

  /** Called once, when the reader is gone. */
  whenClosed(run: () => void): void {
    this.onClosed = run;
    if (this.closed) run();
  }

  get full(): boolean {
    return this.size >= HIGH_WATER;
  }

  /** Resolves when a writer may go on. */
  room(): Promise<void> {
    if (!this.full || this.closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.waiters.push(resolve);
    });
  }

  /** Resolves when everything that was given until now is written; false: it never will be. */
  written(): Promise<boolean> {
    if (this.closed) return Promise.resolve(false);
    if (this.parts.length > 0) {
      this.following ??= new Written();
      return this.following.promise;
    }
    if (!this.writing) return Promise.resolve(true);
    this.current ??= new Written();
    return this.current.promise;
  }

  line(text: string): void {
    this.write(`${text}\n`);
  }

  write(part: string | Uint8Array): void {
    if (this.closed || part.length === 0) return;
    this.parts.push(part);
    this.size += part.length;
    if (!this.writing) this.next();
  }

  private next(): void {
    const buffer = Buffer.concat(this.parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
    this.parts = [];
    this.size = 0;
    this.writing = true;
    this.current = this.following;
    this.following = undefined;
    for (const resolve of this.waiters.splice(0)) resolve();
    this.send(buffer, 0);
  }

  private send(buffer: Uint8Array, offset: number): void {
    write(this.fd, buffer, offset, buffer.length - offset, null, (error, written) => {
      if (error !== null) {
        // somebody else has made the descriptor non-blocking
        if (error.code === 'EAGAIN') setTimeout(() => this.send(buffer, offset), RETRY_MS);
        else this.end(error);
        return;
      }
      if (offset + written < buffer.length) {
        this.send(buffer, offset + written);
        return;
      }
      this.current?.tell(true);
      this.current = undefined;
      if (this.parts.length > 0) this.next();
      else this.writing = false;
    });
  }

  private end(error: NodeJS.ErrnoException): void {
    this.closed = true;
    this.parts = [];
    this.size = 0;
    for (const resolve of this.waiters.splice(0)) resolve();
    this.current?.tell(false);
    this.following?.tell(false);
    if (error.code !== 'EPIPE') this.failed(error);
    this.onClosed();
  }
}

class Written {
  tell: (written: boolean) => void = () => {};
  readonly promise = new Promise<boolean>((resolve) => {
    this.tell = resolve;
  });
}

/** One line to standard error. */
export function complain(message: string): void {
  process.stderr.write(`trunkline: ${message}\n`);
}

export const stdout = new Output(1, (error) => {
  complain(`cannot write the output: ${error.message}`);
  process.exitCode = 1;
});
