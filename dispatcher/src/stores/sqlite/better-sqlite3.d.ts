/** The part of better-sqlite3 that is used here. */
declare module 'better-sqlite3' {
  export type Bound = number | bigint | string | Uint8Array | null;
  export interface Statement {
    run(...bound: Bound[]): { changes: number };
    get(...bound: Bound[]): unknown;
    all(...bound: Bound[]): unknown[];
    pluck(): this;
    raw(): this;
  }
  export default class Database {
    constructor(file: string, options?: { timeout?: number });
    readonly inTransaction: boolean;
    prepare(sql: string): Statement;
    exec(sql: string): this;
    pragma(text: string, options?: { simple?: boolean }): unknown;
    close(): this;
  }
  export class SqliteError extends Error {
    readonly code: string;
  }
}
