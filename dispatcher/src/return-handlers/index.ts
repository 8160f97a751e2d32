import type { ReturnHandler } from '../handlers.js';
import { broadcast } from './broadcast.js';
import { group } from './group.js';
import { latest } from './latest.js';

/** The built-in return handlers. */
export const returnHandlers: Readonly<Record<string, ReturnHandler>> = { broadcast, group, latest };
