/** Hears of a fault of this program itself: an illegal move of a state machine, an exception where none may come from. */
export type FaultListener = (error: unknown) => void;

/**
 * A process that has to go on counts such a fault and takes the safe way out; where nobody listens (tests, simulation)
 * it is thrown.
 */
export function reportFault(listener: FaultListener | undefined, error: unknown): void {
  if (listener === undefined) throw error;
  listener(error);
}
