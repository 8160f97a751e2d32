const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Calls `run` at the first signal that asks the process to end; a second one ends it at once. Returns the way to take
 * this back.
 */
export function onSignal(run: (signal: NodeJS.Signals) => void): () => void {
  const off = () => {
    for (const signal of signals) process.off(signal, first);
  };
  const first = (signal: NodeJS.Signals) => {
    off();
    run(signal);
  };
  for (const signal of signals) process.on(signal, first);
  return off;
}
