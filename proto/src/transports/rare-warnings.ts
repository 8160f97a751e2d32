import type { Log } from '../ports.js';

/** Between two lines of the log of one kind that strangers can cause, in ms. */
const pauseMs = 1000;

/** Strangers may knock as often as they like: the log has one line of each kind per pause, counters have all of them. */
export class RareWarnings {
  private readonly pauses = new Map<string, NodeJS.Timeout>();

  constructor(private readonly log: Log) {}

  warn(message: string, fields: object): void {
    if (this.pauses.has(message)) return;
    this.log.warn(fields, message);
    this.pauses.set(message, setTimeout(() => void this.pauses.delete(message), pauseMs).unref());
  }

  close(): void {
    for (const pause of this.pauses.values()) clearTimeout(pause);
  }
}
