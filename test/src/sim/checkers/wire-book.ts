import { OFFSET, payload, readU32, Type } from '@trunkline/proto';
import type { Wire } from '../network.js';
import type { WireMessage } from './checker.js';

/** What went to and fro for one upstream subscription on one connection. */
export class UpstreamRecord {
  requests = 0;
  lastRequest = 0;
  /** When the step began that the last request was decided in: time may pass before it leaves. */
  askedFrom = 0;
  lastProbe = 0;
  probes = 0;
  /** When the dispatcher last heard of it; 0: never. */
  heard = 0;
  /** The provider said NOT_PROVIDED and was not asked again since. */
  waiting = false;
}

/** More than there are in a run. */
const GENERATIONS = 2 ** 20;

/** Notes REQUESTs, PROBEs and what providers send, per connection, line and generation. */
export class WireBook {
  private readonly wires = new WeakMap<Wire, Map<number, UpstreamRecord>>();

  record(wire: Wire, line: number, generation: number): UpstreamRecord {
    let records = this.wires.get(wire);
    if (records === undefined) {
      records = new Map();
      this.wires.set(wire, records);
    }
    const key = line * GENERATIONS + generation;
    let record = records.get(key);
    if (record === undefined) {
      record = new UpstreamRecord();
      records.set(key, record);
    }
    return record;
  }

  sent(wire: Wire, { type, line, generation }: WireMessage, now: number, stepBegan: number): void {
    if (type !== Type.REQUEST && type !== Type.PROBE) return;
    const record = this.record(wire, line, generation);
    if (type === Type.PROBE) {
      record.probes++;
      record.lastProbe = now;
    } else {
      record.requests++;
      record.lastRequest = now;
      record.askedFrom = stepBegan;
      record.waiting = false;
    }
  }

  received(wire: Wire, message: WireMessage, now: number): void {
    const { type, line, generation, batch, at } = message;
    switch (type) {
      case Type.ACCEPTED:
      case Type.RESPONSE:
      case Type.PROBE_REPLY:
      case Type.PROBE:
      case Type.END: {
        const record = this.record(wire, line, generation);
        record.heard = now;
        record.waiting = false;
        return;
      }
      case Type.WITHDRAW:
        // which of them it is about does not matter: they may all be asked for again
        for (const record of this.wires.get(wire)?.values() ?? []) record.waiting = true;
        return;
      case Type.REFUSED:
        if (payload.readPayload(payload.refused, batch, at).code === 'NOT_PROVIDED') {
          this.record(wire, line, generation).waiting = true;
        }
    }
  }
}

/** Calls `each` for every message of a batch. */
export function messagesOf(batch: Uint8Array, each: (message: WireMessage) => void): void {
  for (let at = 0; at < batch.length; at += readU32(batch, at)) {
    each({
      type: batch[at + OFFSET.type]!,
      code: readU32(batch, at + OFFSET.code),
      line: readU32(batch, at + OFFSET.line),
      generation: readU32(batch, at + OFFSET.generation),
      batch,
      at,
    });
  }
}
