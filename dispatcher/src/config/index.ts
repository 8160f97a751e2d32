export { type CheckedFile, checkFiles, formatChecks } from './check.js';
export type * from './input.js';
export {
  builtInReturnHandlers,
  builtInSendHandlers,
  queueOptionDefaults,
  serviceDefaults,
  sessionDefaults,
} from './input.js';
export { type LoadedConfiguration, maxFileBytes, parseConfiguration, readConfiguration } from './load.js';
export { ConfigurationError, type ConfigurationProblem, closest, formatProblem } from './problems.js';
export { readQueueOptions } from './queue-options.js';
export type { RuleOptions } from './rules.js';
export { configurationSchema } from './schema.js';
