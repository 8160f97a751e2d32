/** A message as it was delivered. */
interface Delivery {
  readonly sequence: number;
  readonly deliveries: number;
  readonly redelivered: boolean;
}

/** What one group saw of one message. */
interface Seen {
  body: string;
  deliveries: number;
  /** `ack()` resolved. */
  acked: boolean;
}

/**
 * What publishers and consumers know of one queue, and what may never be: a confirmed publish that is lost, a message
 * that is stored twice, a confirmed acknowledgement that is forgotten, a count that falls.
 */
export class QueueBook {
  /** Bodies whose publish was confirmed, with their sequence. */
  readonly confirmed = new Map<string, number>();
  /** Publishes of which nothing is known: they may have been stored. */
  readonly unknown = new Set<string>();
  readonly refusals: unknown[] = [];
  /** What may never be, as texts. */
  readonly faults: string[] = [];
  delivered = 0;
  redelivered = 0;
  /** Acknowledgements whose answer was lost with a session. */
  unanswered = 0;
  private readonly sequences = new Map<string, number>();
  private readonly groups = new Map<string, Map<number, Seen>>();
  private readonly ackedCounts = new Map<string, number>();

  confirm(body: string, sequence: number): void {
    this.confirmed.set(body, sequence);
    this.stands(body, sequence);
  }

  /** A body stands at one sequence, whoever tells of it. */
  private stands(body: string, sequence: number): void {
    const known = this.sequences.get(body);
    if (known === undefined) this.sequences.set(body, sequence);
    else if (known !== sequence) this.faults.push(`${body} is stored twice: as ${known} and as ${sequence}`);
  }

  private seen(group: string): Map<number, Seen> {
    let seen = this.groups.get(group);
    if (seen === undefined) {
      seen = new Map();
      this.groups.set(group, seen);
    }
    return seen;
  }

  deliver(group: string, { sequence, deliveries, redelivered }: Delivery, body: string): void {
    this.delivered++;
    if (redelivered) this.redelivered++;
    this.stands(body, sequence);
    const seen = this.seen(group);
    const known = seen.get(sequence);
    if (redelivered !== deliveries > 1) this.faults.push(`${body}: delivery ${deliveries}, marked ${redelivered}`);
    if (known === undefined) {
      seen.set(sequence, { body, deliveries, acked: false });
      return;
    }
    if (known.body !== body) this.faults.push(`${sequence} was ${known.body} and is ${body}`);
    if (known.acked) this.faults.push(`${group}: ${body} was acknowledged and came again`);
    if (deliveries <= known.deliveries) {
      this.faults.push(`${group}: ${body} came as delivery ${known.deliveries} and then as ${deliveries}`);
    }
    known.deliveries = deliveries;
  }

  ack(group: string, sequence: number): void {
    this.seen(group).get(sequence)!.acked = true;
    this.ackedCounts.set(group, this.acked(group) + 1);
  }

  /** Messages that the group acknowledged for certain. */
  acked(group: string): number {
    return this.ackedCounts.get(group) ?? 0;
  }

  /** By how many messages the slowest group is behind the publishers. */
  get backlog(): number {
    let least = this.confirmed.size;
    for (const seen of this.groups.values()) least = Math.min(least, seen.size);
    return this.confirmed.size - least;
  }

  /** Confirmed publishes that the group never got. */
  missing(group: string): string[] {
    const seen = this.seen(group);
    return [...this.confirmed].filter(([, sequence]) => !seen.has(sequence)).map(([body]) => body);
  }

  toString(): string {
    const { confirmed, unknown, delivered, redelivered, unanswered, faults } = this;
    const groups = [...this.groups.keys()].map((group) => `${group}: ${this.acked(group)} acked`).join(', ');
    const lost = [...this.groups.keys()].reduce((sum, group) => sum + this.missing(group).length, 0);
    return `${confirmed.size} publishes confirmed (${unknown.size} without an answer), ${delivered} deliveries, ${redelivered} of them again, ${groups}, ${unanswered} acks without an answer; lost ${lost}, faults ${faults.length}`;
  }
}
