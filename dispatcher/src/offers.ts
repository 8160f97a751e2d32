import type { Provider } from './provider.js';

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Which dialled-in providers OFFERed which codes, in the order of their offers. */
export class Offers {
  private readonly codes = new Map<number, Provider[]>();
  private ranges: { from: number; to: number; provider: Provider }[] = [];

  add(provider: Provider, codes: readonly number[], ranges: readonly Range[]): void {
    for (const code of codes) {
      const list = this.codes.get(code);
      if (list === undefined) this.codes.set(code, [provider]);
      else if (!list.includes(provider)) list.push(provider);
    }
    for (const { from, to } of ranges) {
      const known = this.ranges.some((each) => each.provider === provider && each.from === from && each.to === to);
      if (!known) this.ranges.push({ from, to, provider });
    }
  }

  remove(provider: Provider, codes: readonly number[], ranges: readonly Range[]): void {
    for (const code of codes) this.removeCode(provider, code);
    this.ranges = this.ranges.filter(
      (each) => each.provider !== provider || !ranges.some(({ from, to }) => each.from === from && each.to === to),
    );
  }

  /** The provider is gone. */
  forget(provider: Provider): void {
    for (const code of [...this.codes.keys()]) this.removeCode(provider, code);
    this.ranges = this.ranges.filter((each) => each.provider !== provider);
  }

  private removeCode(provider: Provider, code: number): void {
    const list = this.codes.get(code);
    const at = list?.indexOf(provider) ?? -1;
    if (list === undefined || at < 0) return;
    list.splice(at, 1);
    if (list.length === 0) this.codes.delete(code);
  }

  of(code: number): readonly Provider[] {
    const exact = this.codes.get(code) ?? [];
    const wide = this.ranges.filter((each) => code >= each.from && code <= each.to).map((each) => each.provider);
    return wide.length === 0 ? exact : [...new Set([...exact, ...wide])];
  }
}
