import type { Settings } from './settings.js';

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
