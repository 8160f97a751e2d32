import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Link, LinkEvents } from '@trunkline/proto';
import { ZmqTransport, type ZmqTransportOptions } from '@trunkline/proto/zmq';

/** A transport that the end of the test closes. */
export function transport(t: TestContext, options: ZmqTransportOptions = {}): ZmqTransport {
  const made = new ZmqTransport(options);
  t.after(() => made.close());
  return made;
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
