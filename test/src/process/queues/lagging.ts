import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { connect as connectPublisher } from '@trunkline/publisher';
import { until } from '../../support/wait.js';
import { World } from '../fixtures/world.js';

const CODE = 4001;
const MIB = 1024 * 1024;
const SIZE = 8192;
/** Most that the log is let to grow to, and what one commit may add. */
const LOG = 12 * MIB;
/** Of a dispatcher that keeps nothing of a queue in memory but its newest messages. */
const MEMORY = 400 * MIB;

interface Amounts {
  /** Bytes that are published. */
  readonly total: number;
  /** Bytes that the queue keeps. */
  readonly kept: number;
  /** Bytes that the reader is always behind, more than is kept in memory. */
  readonly lag: number;
}

/** A flag that many wait for. */
class Changes {
  private waiters: (() => void)[] = [];

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  tell(): void {
    for (const resolve of this.waiters.splice(0)) resolve();
  }
}

function residentOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * A queue is written and trimmed at full speed while one reader is always far behind and another one takes nothing at
 * all (F85). The first one reads everything; file, log and memory of the dispatcher stay bounded. Returns the figures.
 */
export async function readBehind({ total, kept, lag }: Amounts): Promise<string> {
  await using world = await World.start({
    services: [{ code: CODE, kind: 'queue', maxBytes: kept, full: 'dropOldest', ackTimeout: '0s' }],
    dataDirectory: 'data',
  });
  const client = await world.client();
  const provider = await connectPublisher(world.address);
  const changes = new Changes();
  const count = Math.floor(total / SIZE);
  const behind = Math.floor(lag / SIZE);
  let confirmed = 0;
  let read = 0;
  const gaps: unknown[] = [];
  const strange: string[] = [];
  let heldBack = 0;
  const stuck = client.consume(CODE, { group: 'stuck', ack: 'manual', window: 1 }, () => {});
  stuck.on('gap', ({ count: lost }) => {
    heldBack += lost;
  });
  const reader = client.consume(CODE, { group: 'behind', window: 64 }, async (message) => {
    if (message.sequence !== read + 1 || message.redelivered) strange.push(`${message.sequence} behind ${read}`);
    if (message.body[0] !== message.sequence % 251) strange.push(`${message.sequence} has another body`);
    await changes.until(() => confirmed - read > behind || confirmed === count);
    read++;
    changes.tell();
  });
  reader.on('gap', (gap) => gaps.push(gap));
  await Promise.all([stuck.accepted, reader.accepted]);

  const sizes = { file: 0, log: 0, memory: 0 };
  const look = () => {
    sizes.file = Math.max(sizes.file, sizeOf(join(world.folder, 'data', 'queues.db')));
    sizes.log = Math.max(sizes.log, sizeOf(join(world.folder, 'data', 'queues.db-wal')));
    sizes.memory = Math.max(sizes.memory, residentOf(world.dispatcher.pid));
  };
  const failures: unknown[] = [];
  const began = performance.now();
  for (let number = 1; number <= count; number++) {
    await provider.drained();
    await changes.until(() => number - read < 2 * behind);
    const body = new Uint8Array(SIZE - 64).fill(number % 251);
    provider.publish(CODE, body).then(
      () => {
        confirmed++;
        changes.tell();
      },
      (error) => failures.push(error),
    );
    if (number % 512 === 0) look();
  }
  await until(() => read === count || strange.length + failures.length + gaps.length > 0, 'everything is read', 60_000);
  const seconds = (performance.now() - began) / 1000;
  look();
  assert.deepEqual([failures, gaps, strange.slice(0, 3)], [[], [], []]);
  assert.equal(read, count);
  assert.ok(heldBack > 0, 'the one that takes nothing was told what it lost');
  const mib = (bytes: number) => Math.round(bytes / MIB);
  const shown = `file ${mib(sizes.file)}, log ${mib(sizes.log)}, memory ${mib(sizes.memory)} MiB at most`;
  assert.ok(sizes.log <= LOG, shown);
  assert.ok(sizes.file <= 1.5 * kept + 16 * MIB, shown);
  assert.ok(sizes.memory <= MEMORY, shown);
  await client.close();
  await provider.close();
  const speed = mib(total / seconds);
  return `${count} messages, ${mib(total)} MiB in ${seconds.toFixed(1)} s (${speed} MiB/s), ${mib(lag)} MiB behind: ${shown}`;
}
