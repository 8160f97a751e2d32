import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeMessage, Flag, payload, type SessionLimits, singleMessage, Type } from '@trunkline/proto';
import { DispatcherWorld, nothing, type RawPeer, type Received } from '../../support/dispatcher-world.js';
import { SeededRandom } from '../../support/memory-link.js';

const CODES = [0, 1, 2, 3, 4, 5, 99];
const services = [
  { code: 1, keep: 'last', limits: { maxStreams: 3 } },
  { code: 2, sendHandler: 'all', keep: { lastPerKey: 2 }, returnHandlers: ['broadcast', 'group', 'latest'] },
  { code: 3, sendHandler: 'roundRobin', linger: '50ms', keep: { ring: 3 }, requestWindow: 1 },
  { code: '4-5', sendHandler: 'hash', probeAfter: '20ms', probeMisses: 1, resendAfter: '10ms', resendCap: '40ms' },
].map((service) => ({
  providers: 'dynamic',
  returnHandlers: ['broadcast', 'group', 'latest'],
  overflow: ['dropOldest', 'latest', 'disconnect', 'block'],
  ...service,
}));

/** A peer that says well-formed things that make no sense: what it was told, what others were told, and numbers. */
class Hostile {
  private readonly seen: Received[] = [];

  constructor(
    readonly peer: RawPeer,
    private readonly random: SeededRandom,
    private readonly all: Received[],
  ) {}

  private int(most: number): number {
    return Math.floor(this.random.next() * (most + 1));
  }

  private pick<T>(from: readonly T[]): T {
    return from[this.int(from.length - 1)]!;
  }

  /** Header fields of a message that came here, or to somebody else, or of none. */
  private target(): { code: number; line: number; generation: number } {
    const told = this.peer.take();
    this.seen.push(...told);
    this.all.push(...told);
    const asked = this.seen.filter(({ type }) => type === 'REQUEST' || type === 'PROBE');
    const known = this.pick([asked, asked, asked, asked, this.seen, this.all]);
    if (known.length === 0 || this.int(19) === 0)
      return { code: this.pick(CODES), line: this.int(20), generation: this.int(20) };
    const { code, line, generation } = known[Math.max(0, known.length - 1 - this.int(5))]!;
    return { code, line, generation: generation + this.pick([0, 0, 0, 0, 0, 0, 0, 1]) };
  }

  private request(): [number, Uint8Array] {
    const fields = {
      request: this.int(6),
      params: this.pick([
        new Uint8Array(0),
        new Uint8Array([this.int(2)]),
        new TextEncoder().encode('{"show":"streams"}'),
      ]),
      filter: this.pick(['', '', '', '', 'key == "a"', 'tag ==', 'attrs.x > 1 && key == "b"']),
      returnHandler: this.pick(['', '', 'group', 'latest', 'latest', this.int(5) === 0 ? 'none' : '']),
      group: this.pick(['g', 'g', 'g', '']),
      rate: this.pick([0, 1, 1000, 2 ** 32 - 1]),
      overflow: this.pick(['', '', '', 'block', 'disconnect', 'latest', 'latest', this.int(5) === 0 ? 'nonsense' : '']),
      start: {
        from: this.int(3),
        sequence: this.pick([0, 1, Number.MAX_SAFE_INTEGER]),
        epoch: new Uint8Array(this.pick([0, 0, 12, 12, this.int(5) === 0 ? 100 : 0])),
      },
    };
    return [Type.REQUEST, payload.request.encode(fields)];
  }

  private control(): [number, Uint8Array?] {
    const codes = Array.from({ length: this.int(4) }, () => this.pick(CODES));
    const texts = ['', 'COMPLETED', 'REFUSED', 'NOT_PROVIDED', 'constructor', 'SERVICE_REMOVED'];
    switch (this.int(13)) {
      case 0:
      case 1:
      case 2:
        return this.request();
      case 3:
        return [Type.CANCEL, payload.cancel.encode({ request: this.int(6) })];
      case 4:
      case 5:
        return [
          Type.OFFER,
          payload.offer.encode({ codes, ranges: this.pick([[], [1, 3], [4, 5], [5, 4], [0, 99], [7]]) }),
        ];
      case 6:
        return [Type.WITHDRAW, payload.offer.encode({ codes, ranges: this.pick([[], [4, 5], [1, 2]]) })];
      case 7:
      case 8:
        return [Type.ACCEPTED];
      case 9:
        return [this.pick([Type.PROBE, Type.PROBE_REPLY])];
      case 10:
        return [Type.REFUSED, payload.refused.encode({ code: this.pick(texts), message: 'm', retryable: true })];
      case 11:
        return [Type.END, payload.end.encode({ code: this.pick(texts), exit: -1 })];
      case 12:
        return [Type.CREDIT, payload.credit.encode({ limit: this.pick([0, 10, 100_000, Number.MAX_SAFE_INTEGER]) })];
      default:
        return [
          this.pick([Type.ACK, Type.STATUS, Type.GAP, Type.PUBLISHED, Type.HELLO, Type.EXTEND]),
          new Uint8Array(this.int(5)),
        ];
    }
  }

  act(): void {
    const { session } = this.peer;
    if (session.state !== 'open') return;
    if (this.int(2) === 0) {
      const type = this.pick([Type.RESPONSE, Type.RESPONSE, Type.RESPONSE, Type.PUBLISH, 200]);
      const flags = this.pick([0, 0, 0, 0, Flag.FINAL, Flag.SNAPSHOT | Flag.SNAPSHOT_END, 255]);
      const body = 'x'.repeat(this.pick([0, 10, 3000]));
      session.sendEncoded(encodeMessage({ type, flags, ...this.target() }, body, { key: this.pick(['', 'a', 'b']) }));
      return;
    }
    const [type, bytes] = this.control();
    const header = type === Type.REQUEST || type === Type.OFFER ? { code: this.pick(CODES) } : this.target();
    session.sendEncoded(singleMessage({ type, ...header }, bytes));
  }
}

const LIMITS: Partial<SessionLimits>[] = [
  {},
  { receiveWindow: 1024 },
  { maxMessage: 1024 },
  { receiveWindow: 1024, maxMessage: 2000 },
];

type Counts = Record<string, number>;

/** @returns what was left over once all of them had gone; adds to `counts` what happened */
async function run(seed: number, counts: Counts): Promise<object> {
  const random = new SeededRandom(seed);
  const made = await DispatcherWorld.start(services, {
    session: { outbox: '4KiB', maxSubscriptions: 5, receiveWindow: '1MiB' },
  });
  const told: Received[] = [];
  const bystander = await made.peer();
  const hostile: Hostile[] = [];
  for (let step = 0; step < 120; step++) {
    if (hostile.length < 5 || random.next() < 0.05) {
      hostile.push(new Hostile(await made.peer(LIMITS[hostile.length % 4]), random, told));
    }
    for (const each of hostile) each.act();
    const { peer } = hostile[Math.floor(random.next() * hostile.length)]!;
    if (random.next() < 0.1) peer.consuming = false;
    if (random.next() < 0.1) peer.resume();
    if (random.next() < 0.03) peer.session.close();
    if (random.next() < 0.3) await made.advance(15);
    else await made.settle();
  }
  assert.equal(bystander.closed, undefined);
  for (const { peer } of hostile) peer.session.close();
  await made.advance(100);
  assert.equal(made.dispatcher.peers.size, 1);
  for (const [name, count] of Object.entries(made.dispatcher.core.counters)) counts[name] = (counts[name] ?? 0) + count;
  const { timers } = made.world;
  return { ...made.leftovers(), timers: timers.size };
}

test('peers that say whatever they like break nothing, and leave nothing when they go', async () => {
  const counts: Counts = {};
  for (let seed = 1; seed <= 40; seed++) {
    // the bystander's session has two timers at each end
    assert.deepEqual(
      await run(seed, counts).catch((error: Error) => assert.fail(`seed ${seed}: ${error.stack}`)),
      { ...nothing, timers: 4 },
      `seed ${seed}`,
    );
  }
  for (const name of ['accepted', 'refusals', 'resends', 'probes', 'outdated', 'unknownLine', 'gaps']) {
    assert.ok(counts[name]! > 20, `${name}: ${counts[name]}, so the test says little`);
  }
  assert.equal(counts.faults, 0);
});
