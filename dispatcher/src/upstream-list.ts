import type { Upstream } from './upstream.js';

/** The upstreams of one provider, in the order in which they began: each knows its neighbours. */
export class UpstreamList implements Iterable<Upstream> {
  size = 0;
  private first: Upstream | undefined;
  private last: Upstream | undefined;

  add(upstream: Upstream): void {
    upstream.before = this.last;
    if (this.last === undefined) this.first = upstream;
    else this.last.after = upstream;
    this.last = upstream;
    this.size++;
  }

  /** Of one that is in the list. */
  delete(upstream: Upstream): void {
    const { before, after } = upstream;
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.last = before;
    else after.before = before;
    upstream.before = undefined;
    upstream.after = undefined;
    this.size--;
  }

  /** Nothing may be added or deleted meanwhile. */
  *[Symbol.iterator](): Generator<Upstream> {
    for (let each = this.first; each !== undefined; each = each.after) yield each;
  }
}
