import type { Settings } from './settings.js';

/**
 * Longest that a step goes on, ms, beyond the batch it is in: what is cheap to receive may be dear to handle, and
 * whoever is not heard meanwhile, as no timer runs, is given up by its peers.
 */
export const longestStepMs = 20;

/** Calls an event receiver, whose faults are counted and logged. */
export function guarded(settings: Settings, action: () => void): void {
  try {
    action();
  } catch (error) {
    receiverFailed(settings, error);
  }
}

export function receiverFailed(settings: Settings, error: unknown, what = 'an event receiver threw'): void {
  settings.counters.faults++;
  settings.log.error({ error }, what);
}
