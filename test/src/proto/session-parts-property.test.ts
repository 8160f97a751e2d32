import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyStart, OFFSET, payload, readU32, singleMessage, Type } from '@trunkline/proto';
import fc from 'fast-check';
import { MemoryWorld } from '../support/memory-link.js';
import { batchOf, Pair, response } from './session-ends.js';

const ENDS = ['BYE', 'RESET', 'wrong HEARTBEAT'];

interface Plan {
  /** Each batch as its messages, with the time that goes by before the next one, ms. */
  readonly batches: readonly { readonly kinds: readonly string[]; readonly pause: number }[];
  /** What handling the messages costs, ms, one after the other and again from the start. */
  readonly costs: readonly number[];
}

const data = fc.record({ line: fc.integer({ min: 1, max: 3 }), count: fc.integer({ min: 1, max: 80 }) });
const kinds = fc.oneof(
  { weight: 6, arbitrary: data.map(({ line, count }) => Array.from({ length: count }, () => `line ${line}`)) },
  { weight: 1, arbitrary: fc.constantFrom(['final'], ['OFFER'], ['CREDIT'], ['HEARTBEAT'], ['bad payload']) },
);
const batch = fc.record({
  kinds: fc.oneof(
    { weight: 8, arbitrary: fc.array(kinds, { minLength: 1, maxLength: 5 }).map((all) => all.flat()) },
    { weight: 1, arbitrary: fc.constantFrom(['malformed'], ...ENDS.map((end) => [end])) },
  ),
  pause: fc.constantFrom(0, 0, 1, 15, 200),
});
const plan: fc.Arbitrary<Plan> = fc.record({
  batches: fc.array(batch, { minLength: 1, maxLength: 12 }),
  costs: fc.array(fc.constantFrom(0, 0, 0, 0.01, 0.3, 2, 25), { minLength: 1, maxLength: 40 }),
});

/** What the session tells of the plan, message by message. */
async function run({ batches, costs }: Plan, cost: boolean): Promise<string[]> {
  const seen: string[] = [];
  const pair = await new Pair(new MemoryWorld(), { heartbeat: 1e6 }).open({ heartbeatMs: 1e6, credit: 0 });
  const { world, session, peer } = pair;
  const spend = () => {
    if (cost) world.time += costs[seen.length % costs.length]!;
  };
  pair.on.onData = (_session, bytes, start, end, count) => {
    let messages = 0;
    for (let at = start; at < end; at += readU32(bytes, at), messages++) {
      const text = new TextDecoder().decode(bytes.subarray(bodyStart(bytes, at), at + readU32(bytes, at)));
      seen.push(`${text} on ${readU32(bytes, at + OFFSET.line)}`);
      spend();
    }
    assert.equal(messages, count);
    session.consume(end - start);
  };
  pair.on.onControl = (_session, type) => {
    seen.push(`control ${type}`);
    spend();
  };
  pair.on.onCredit = () => seen.push(`credit ${session.credit}`);
  pair.on.onClosed = (_session, { code }) => seen.push(`closed ${code}`);
  let number = 0;
  let limit = 0;
  const beat = (batches: number) => singleMessage({ type: Type.HEARTBEAT }, payload.heartbeat.encode({ batches }));
  const message = (kind: string, sent: number): Uint8Array => {
    if (kind.startsWith('line')) return response(`message ${number++}`, false, Number(kind.slice(5)));
    if (kind === 'final') return response(`message ${number++}`, true);
    if (kind === 'OFFER') return singleMessage({ type: Type.OFFER });
    limit += 100;
    if (kind === 'CREDIT') return singleMessage({ type: Type.CREDIT }, payload.credit.encode({ limit }));
    if (kind === 'HEARTBEAT') return beat(sent);
    if (kind === 'wrong HEARTBEAT') return beat(sent + 1);
    if (kind === 'bad payload') return singleMessage({ type: Type.CREDIT }, new Uint8Array([255, 255]));
    if (kind === 'malformed') return new Uint8Array(50);
    if (kind === 'RESET') return singleMessage({ type: Type.RESET });
    return singleMessage({ type: Type.BYE }, payload.bye.encode({ code: 'KICKED', message: '', retryable: false }));
  };
  for (const [sent, { kinds: each, pause }] of batches.entries()) {
    peer.link.send(batchOf(...each.map((kind) => message(kind, sent))));
    await world.settle();
    if (cost && pause > 0) await world.advance(pause);
    // a peer says nothing behind its end
    if (ENDS.includes(each[0]!)) break;
  }
  for (let turn = 0; session.behind; turn++) {
    assert.ok(turn < 100_000, 'it comes to an end');
    world.timers.advance();
  }
  await world.settle();
  const { length = 0, payload: payloads = 0 } = session.faults;
  seen.push(`${length} and ${payloads} faults`, session.state);
  const granted = pair.peer.takeMessages().filter(({ type }) => type === 'RESET').length;
  seen.push(`${granted} answered RESET`, `${session.messagesIn} messages of ${session.bytesIn} bytes`);
  session.close();
  assert.equal(world.timers.size, 0);
  assert.equal(pair.context.turns.size, 0);
  return seen;
}

test('whatever comes and whatever it costs: the same is handed over in the same order, in parts or not', async () => {
  await fc.assert(
    fc.asyncProperty(plan, async (each) => {
      assert.deepEqual(await run(each, true), await run(each, false));
    }),
    { numRuns: 150 },
  );
});

test('the property sees parts at all', async () => {
  const pair = await new Pair().open({ heartbeatMs: 1e6 });
  pair.on.onData = (_session, _batch, _start, _end, count) => {
    pair.world.time += count;
  };
  pair.peer.link.send(batchOf(...Array.from({ length: 80 }, () => response('x'))));
  await pair.world.settle();
  assert.ok(pair.session.behind);
});
