import type { Session } from '@trunkline/proto';

/**
 * Credit of a provider that is withheld while subscribers with overflow `block` have not taken what it sent, or a queue
 * has not stored it: the provider slows to their pace and the dispatcher keeps no more than the provider's window. Only data spends credit, so
 * requests, cancels and probes always pass and nothing can wait for itself.
 */
export class Hold {
  private references = 0;
  private bytes = 0;

  constructor(private readonly session: Session) {}

  retain(): void {
    this.references++;
  }

  release(): void {
    if (--this.references === 0) this.session.consume(this.bytes);
  }

  /** The run was delivered to everybody: gives its bytes back now, or when the last of them is taken. */
  settle(bytes: number): void {
    if (this.references === 0) this.session.consume(bytes);
    else this.bytes = bytes;
  }
}
