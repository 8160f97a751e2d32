import type { Provider } from './provider.js';

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Most codes and ranges that one provider may offer at a time. */
export const MAX_OFFERED_CODES = 100_000;
export const MAX_OFFERED_RANGES = 1000;

interface Offered {
  readonly codes: Set<number>;
  /** By `from-to`. */
  readonly ranges: Map<string, Range>;
}

/** Which dialled-in providers OFFERed which codes, in the order of their offers. */
export class Offers {
  private readonly providers = new Map<Provider, Offered>();
  private readonly codes = new Map<number, Set<Provider>>();
  /** Providers with ranges. */
  private readonly wide = new Set<Provider>();

  /** What was asked for last: a storm of requests is mostly of one code. 0: nothing, or it may have changed. */
  private lastCode = 0;
  private lastFound: readonly Provider[] = [];

  /** Takes all of it, or nothing where it would be more than a provider may offer: returns false then. */
  add(provider: Provider, codes: readonly number[], ranges: readonly Range[]): boolean {
    const offered = this.providers.get(provider) ?? { codes: new Set(), ranges: new Map() };
    const more = new Set(codes.filter((code) => !offered.codes.has(code)));
    const wider = new Map(ranges.map((range) => [nameOf(range), range]));
    for (const name of offered.ranges.keys()) wider.delete(name);
    if (offered.codes.size + more.size > MAX_OFFERED_CODES) return false;
    if (offered.ranges.size + wider.size > MAX_OFFERED_RANGES) return false;
    this.changed();
    this.providers.set(provider, offered);
    for (const code of more) {
      offered.codes.add(code);
      const list = this.codes.get(code);
      if (list === undefined) this.codes.set(code, new Set([provider]));
      else list.add(provider);
    }
    for (const [name, range] of wider) offered.ranges.set(name, range);
    if (offered.ranges.size > 0) this.wide.add(provider);
    return true;
  }

  remove(provider: Provider, codes: readonly number[], ranges: readonly Range[]): void {
    const offered = this.providers.get(provider);
    if (offered === undefined) return;
    this.changed();
    for (const code of codes) if (offered.codes.delete(code)) this.removeCode(provider, code);
    for (const range of ranges) offered.ranges.delete(nameOf(range));
    if (offered.ranges.size === 0) this.wide.delete(provider);
  }

  /** The provider is gone. */
  forget(provider: Provider): void {
    const offered = this.providers.get(provider);
    if (offered === undefined) return;
    this.changed();
    this.providers.delete(provider);
    this.wide.delete(provider);
    for (const code of offered.codes) this.removeCode(provider, code);
  }

  private changed(): void {
    this.lastCode = 0;
    this.lastFound = [];
  }

  private removeCode(provider: Provider, code: number): void {
    const list = this.codes.get(code);
    if (list?.delete(provider) && list.size === 0) this.codes.delete(code);
  }

  /** Those that offered the code itself come before those that offered a range around it. */
  of(code: number): readonly Provider[] {
    if (code !== this.lastCode) {
      this.lastFound = this.find(code);
      this.lastCode = code;
    }
    return this.lastFound;
  }

  private find(code: number): readonly Provider[] {
    const exact = this.codes.get(code);
    const found = exact === undefined ? [] : [...exact];
    for (const provider of this.wide) if (!exact?.has(provider) && this.spans(provider, code)) found.push(provider);
    return found;
  }

  has(provider: Provider, code: number): boolean {
    return this.codes.get(code)?.has(provider) === true || this.spans(provider, code);
  }

  private spans(provider: Provider, code: number): boolean {
    if (!this.wide.has(provider)) return false;
    for (const { from, to } of this.providers.get(provider)!.ranges.values()) {
      if (code >= from && code <= to) return true;
    }
    return false;
  }
}

function nameOf({ from, to }: Range): string {
  return `${from}-${to}`;
}
