import { setTimeout as pause } from 'node:timers/promises';

/**
 * Opens a field for each system of the bench, measures them in turns for all rounds, and closes them. A system that
 * fails is reported and left out. Returns what each measured, by system and round.
 */
export async function interleave(bench, open, { measure }) {
  const fields = [];
  const results = {};
  try {
    for (const system of bench.systems) {
      const field = await bench.attempt(system, () => open(system));
      if (field === undefined) continue;
      fields.push({ system, field });
      results[system.name] = [];
    }
    for (let round = 0; round < bench.rounds; round++) {
      for (const { system, field } of turned(fields, round)) {
        const result = await bench.attempt(system, () => measure(field));
        if (result !== undefined) results[system.name].push(result);
        await pause(50);
      }
    }
    return results;
  } finally {
    await Promise.all(fields.map(({ field }) => field.close()));
  }
}

/** Every round begins with another one, so that nobody always runs behind the same neighbour. */
export function turned(list, round) {
  const from = list.length === 0 ? 0 : round % list.length;
  return [...list.slice(from), ...list.slice(0, from)];
}

export function median(values) {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
