import type { Settings } from './settings.js';

/** Reasons of a lost attempt. The second: connected, and then nothing: a process that is stopped, or not one of ours. */
export const NO_CONNECTION = 'no connection';
export const UNANSWERED = 'handshake not answered';

/** How long to wait after so many attempts without success, ms; spread, so that a thousand links do not return at once. */
export function reconnectPause(attempts: number, { reconnectMs, reconnectMaxMs }: Settings): number {
  const pause = Math.min(reconnectMs * 2 ** Math.min(attempts, 20), reconnectMaxMs);
  return pause * (0.75 + Math.random() / 2);
}
