import type { Session } from '@trunkline/proto';
import type { Core } from './core.js';
import type { ProviderView } from './handlers.js';
import { Pacer, Prober } from './pacer.js';
import { UpstreamList } from './upstream-list.js';

/** A process that answers requests, as the dispatcher sees it: a static address, or a session that OFFERed codes. */
export class Provider implements ProviderView {
  /** Set while it is up. */
  session: Session | undefined;
  readonly upstreams = new UpstreamList();
  readonly pacer = new Pacer();
  readonly prober: Prober;
  /** Times it came up. */
  starts = 0;

  constructor(
    core: Core,
    readonly id: string,
    readonly label: string,
    /** Set for a static one. */
    readonly address?: string,
  ) {
    this.prober = new Prober(core);
  }

  get up(): boolean {
    return this.session !== undefined;
  }

  get load(): number {
    return this.upstreams.size;
  }
}
