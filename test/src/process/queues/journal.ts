import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../fixtures/child.js';
import type { World } from '../fixtures/world.js';
import type { QueueBook } from './book.js';
import { CODE } from './members.js';

/** All that members wrote down, in the order of time. */
export class Journal {
  readonly file: string;

  constructor(world: World) {
    this.file = join(world.folder, 'journal');
    appendFileSync(this.file, '');
  }

  lines(): string[][] {
    const lines = readFileSync(this.file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => line.split(' '));
  }

  count(group: string, what: string): number {
    return this.lines().filter((words) => words[1] === group && words[2] === what).length;
  }

  /** What the lines say, in the book of what may never be. */
  enter(book: QueueBook): void {
    const lines = this.lines().sort(([one], [other]) => Number(BigInt(one!) - BigInt(other!)));
    for (const [, group, what, number, deliveries, marked, body] of lines) {
      const sequence = Number(number);
      if (what === 'acked') book.ack(group!, sequence);
      else {
        const seen = { sequence, deliveries: Number(deliveries), redelivered: marked === '1' };
        book.deliver(group!, seen, body!);
      }
    }
  }
}

export async function startMember(world: World, { file }: Journal, group: string, window: number): Promise<Child> {
  const child = world.child('../queues/journal-process.js');
  await child.call('run', world.address, CODE, group, window, file);
  return child;
}
