// `npm run fuzz -- [--seconds N] [--seed S]`: runs every fuzzer in turns; a failure prints the seed that replays it.
import { parseArgs } from 'node:util';
import { fuzzBatch } from './batch.js';
import { fuzzConfiguration } from './configuration.js';
import { fuzzHeader } from './header.js';
import { fuzzPayload } from './payload.js';
import { seededRandom } from './random.js';

const fuzzers: Record<string, (random: () => number, rounds: number) => void> = {
  header: fuzzHeader,
  batch: fuzzBatch,
  payload: fuzzPayload,
  configuration: fuzzConfiguration,
};
/** Rounds of one fuzzer before the next has its turn. */
const ROUNDS = 200;

function options(): { seconds: number; seed: number } | undefined {
  try {
    const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } });
    const seconds = Number(values.seconds ?? 10);
    const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 32));
    return seconds > 0 && Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32 ? { seconds, seed } : undefined;
  } catch {
    return undefined; // an option that does not exist
  }
}

const given = options();
if (given === undefined) {
  console.error('usage: npm run fuzz -- [--seconds N] [--seed S], with N > 0 and S an integer of 32 bits');
  process.exit(2);
}

const { seconds, seed: firstSeed } = given;
const until = performance.now() + seconds * 1000;
let rounds = 0;
let seed = firstSeed;
console.log(`seed ${firstSeed}, ${seconds} s: ${Object.keys(fuzzers).join(', ')}`);
for (; rounds === 0 || performance.now() < until; seed = (seed + 1) % 2 ** 32) {
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
}
console.log(`${rounds} rounds, next seed ${seed}`);
