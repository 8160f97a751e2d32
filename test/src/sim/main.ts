import { parseArgs } from 'node:util';
import { runCanaries } from './canaries.js';
import { type Outcome, simulate } from './simulation.js';

const USAGE = `usage: npm run sim -- --seeds N [--from S]   N seeds, from S on (1)
       npm run sim -- --seed S [--trace]    one seed again, exactly
       npm run sim -- --canaries            broken rules that the checkers must find`;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    from: { type: 'string' },
    seed: { type: 'string' },
    trace: { type: 'boolean' },
    canaries: { type: 'boolean' },
  },
});

function number(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) {
    console.error(USAGE);
    process.exit(2);
  }
  return value;
}

function describe({ seed, time, failure }: Outcome): string {
  const error = failure instanceof Error ? (failure.stack ?? failure.message) : String(failure);
  return `seed ${seed} failed at ${time} ms: ${error}\n  again: npm run sim -- --seed ${seed} --trace`;
}

async function one(seed: number): Promise<number> {
  const outcome = await simulate(seed, values.trace ? console.log : undefined);
  const { events, time, messages, fingerprint } = outcome;
  if (outcome.failure !== undefined) console.log(describe(outcome));
  console.log(`seed ${seed}: ${events} events, ${messages} messages, ${time} ms of virtual time, trace ${fingerprint}`);
  return outcome.failure === undefined ? 0 : 1;
}

async function many(count: number, from: number): Promise<number> {
  const began = performance.now();
  let failed = 0;
  let events = 0;
  for (let seed = from; seed < from + count; seed++) {
    const outcome = await simulate(seed);
    events += outcome.events;
    if (outcome.failure !== undefined) {
      failed++;
      console.log(describe(outcome));
    }
    const done = seed - from + 1;
    if (done % 200 === 0 && done < count) console.log(`${done} of ${count} seeds, ${failed} failed`);
  }
  const seconds = (performance.now() - began) / 1000;
  console.log(`${events} events in ${seconds.toFixed(1)} s, ${(count / seconds).toFixed(1)} seeds/s`);
  console.log(`${count} seeds, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

async function canaries(): Promise<number> {
  let missed = 0;
  for await (const { name, caught, seed, failure } of runCanaries()) {
    if (caught === undefined) missed++;
    console.log(`${name} → ${caught === undefined ? `NOT CAUGHT: ${failure}` : `${caught} (seed ${seed})`}`);
  }
  return missed === 0 ? 0 : 1;
}

if (values.canaries) process.exitCode = await canaries();
else if (values.seed !== undefined) process.exitCode = await one(number(values.seed));
else process.exitCode = await many(number(values.seeds ?? '200'), number(values.from ?? '1'));
