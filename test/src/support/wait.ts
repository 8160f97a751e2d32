import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** Waits until a condition holds, looking again in every turn at first and every few ms later; throws after the limit. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let round = 0; ; round++) {
    if (await condition()) return;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`);
    if (round < 50) await nextTurn();
    else await pause(Math.min(round - 49, 10));
  }
}
