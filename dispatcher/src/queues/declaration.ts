import { TrunklineError } from '@trunkline/proto';
import { type QueueOptions, queueDefaults } from './options.js';
import type { QueueState } from './queue.js';
import type { Range } from './ranges.js';

export interface QueueDeclaration {
  /** Service code. */
  readonly code: number;
  /** For people. */
  readonly name: string;
  readonly options: QueueOptions;
}

/** Who declared a queue: the configuration file, or somebody at run time. */
export type DeclaredBy = 'configuration' | 'admin';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

/** A queue's declaration, which is stored together with what has to be known of the queue beside its messages. */
export class Declaration implements QueueDeclaration {
  readonly code: number;
  readonly name: string;
  readonly options: QueueOptions;

  constructor(
    { code, name, options }: QueueDeclaration,
    readonly by: DeclaredBy,
  ) {
    this.code = code;
    this.name = name;
    this.options = { ...queueDefaults, ...options };
  }

  equals(other: Declaration): boolean {
    const { options } = this;
    const keys = Object.keys(queueDefaults) as (keyof QueueOptions)[];
    return this.name === other.name && this.by === other.by && keys.every((key) => options[key] === other.options[key]);
  }

  encode({ last, floor, removed }: { last: number; floor: number; removed: Iterable<Range> }): Uint8Array {
    const { code, name, options, by } = this;
    const record = { version: 1, code, name, by, options, last, floor, removed: [...removed] };
    return encoder.encode(JSON.stringify(record));
  }

  /** @throws TrunklineError STORE_DAMAGED */
  static decode(bytes: Uint8Array): { declaration: Declaration; state: QueueState } {
    try {
      const { code, name, by, options, last, floor, removed } = JSON.parse(decoder.decode(bytes));
      if (!Number.isInteger(code) || !Number.isInteger(last) || !Number.isInteger(floor)) throw new Error('no numbers');
      return { declaration: new Declaration({ code, name, options }, by), state: { last, floor, removed } };
    } catch (cause) {
      throw new TrunklineError('STORE_DAMAGED', 'the record of a queue cannot be read', { cause });
    }
  }
}
