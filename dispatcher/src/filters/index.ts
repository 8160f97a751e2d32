export { MAX_NESTED_MACROS } from './calls.js';
export {
  DEFAULT_MAX_FILTER_LENGTH,
  Filter,
  FilterCompiler,
  type FilterCompilerOptions,
  type FilterInput,
  type IndexedEquality,
  MAX_FILTER_STEPS,
  type Predicate,
} from './filter.js';
export { FilterIndex } from './filter-index.js';
export { parseJsonBody } from './json-body.js';
