// `npm run fuzz -- [--seconds N] [--seed S]`: runs every fuzzer in turns; a failure prints the seed that replays it.
import { parseArgs } from 'node:util';
import { fuzzBatch } from './batch.js';
import { fuzzHeader } from './header.js';
import { fuzzPayload } from './payload.js';
import { seededRandom } from './random.js';

const fuzzers: Record<string, (random: () => number, rounds: number) => void> = {
  header: fuzzHeader,
  batch: fuzzBatch,
  payload: fuzzPayload,
};
/** Rounds of one fuzzer before the next has its turn. */
const ROUNDS = 200;

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } });
const seconds = Number(values.seconds ?? 10);
const firstSeed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
if (!(seconds > 0) || !Number.isInteger(firstSeed) || firstSeed < 0 || firstSeed >= 2 ** 32) {
  console.error('usage: npm run fuzz -- [--seconds N] [--seed S], with N > 0 and S an integer of 32 bits');
  process.exit(2);
}

const until = performance.now() + seconds * 1000;
let seed = firstSeed;
let rounds = 0;
console.log(`seed ${firstSeed}, ${seconds} s: ${Object.keys(fuzzers).join(', ')}`);
do {
  for (const [name, fuzz] of Object.entries(fuzzers)) {
    try {
      fuzz(seededRandom(seed), ROUNDS);
    } catch (error) {
      console.error(`${name} failed after ${rounds} rounds; replay with --seed ${seed}`);
      console.error(error);
      process.exit(1);
    }
    rounds += ROUNDS;
  }
  seed = (seed + 1) % 2 ** 32;
} while (performance.now() < until);
console.log(`${rounds} rounds, last seed ${seed - 1}`);
