import { bodyStart, Flag, knownCode, OFFSET, payload, readU32, type Session, Type } from '@trunkline/proto';
import type { Core } from './core.js';
import { Hold } from './hold.js';
import type { Peer } from './peer.js';
import { Stream } from './stream.js';
import type { Upstream } from './upstream.js';

/** What providers send: responses, answers, probes and offers. */
export class ProviderMessages {
  private run: { session: Session; hold: Hold | undefined } | undefined;

  constructor(private readonly core: Core) {}

  /** The hold of the run that is being delivered, for outboxes that have to block. */
  readonly currentHold = (): Hold | undefined => {
    const { run } = this;
    if (run === undefined) return undefined;
    run.hold ??= new Hold(run.session);
    return run.hold;
  };

  /** A run of responses: to its stream, if they are of its current upstream subscription. */
  responses(peer: Peer, batch: Uint8Array, start: number, end: number, count: number): void {
    const { session } = peer;
    const upstream = this.find(peer, batch, start);
    if (upstream === undefined) {
      this.core.counters.outdated += count;
      session.consume(end - start);
      return;
    }
    // not the clock anew: a batch may hold runs of many streams
    upstream.heard(session.lastHeard);
    const run = { session, hold: undefined as Hold | undefined };
    this.run = run;
    try {
      upstream.stream.receive(batch, start, end, count);
    } finally {
      this.run = undefined;
    }
    if (run.hold === undefined) session.consume(end - start);
    else run.hold.settle(end - start);
    if (batch[start + OFFSET.flags]! & Flag.FINAL) {
      upstream.stream.upstreamEnded(upstream, { code: 'COMPLETED', message: '' }, true);
    }
  }

  /** The current upstream a message belongs to. A provider that still serves a line nobody has is told to stop. */
  private find(peer: Peer, batch: Uint8Array, at: number): Upstream | undefined {
    const line = readU32(batch, at + OFFSET.line);
    const generation = readU32(batch, at + OFFSET.generation);
    const owner = this.core.lines.get(line);
    const stream = owner instanceof Stream && owner.line === line ? owner : undefined;
    const upstream = peer.provider ? stream?.upstreamOf(peer.provider) : undefined;
    if (upstream?.generation === generation) return upstream;
    this.core.counters.unknownLine++;
    if (peer.provider !== undefined && (upstream === undefined || upstream.generation > generation)) {
      const code = readU32(batch, at + OFFSET.code);
      peer.session.send({ type: Type.CANCEL, code, line, generation });
    }
    return undefined;
  }

  /** Everything of a provider that is not data. */
  control(peer: Peer, type: number, batch: Uint8Array, at: number): void {
    switch (type) {
      case Type.ACCEPTED:
        this.find(peer, batch, at)?.heard(peer.session.lastHeard);
        return;
      case Type.PROBE_REPLY:
      case Type.PROBE:
        this.probe(peer, type, batch, at);
        return;
      case Type.REFUSED:
        this.refused(peer, batch, at);
        return;
      case Type.END:
        this.ended(peer, batch, at);
        return;
      default:
        peer.session.countFault('unexpected');
    }
  }

  /** An answer to a probe, or a provider's own: it is alive, and the service may want to know. */
  private probe(peer: Peer, type: number, batch: Uint8Array, at: number): void {
    const upstream = this.find(peer, batch, at);
    if (upstream === undefined) return;
    upstream.heard(peer.session.lastHeard);
    const { stream, provider } = upstream;
    const reply = type === Type.PROBE_REPLY;
    if (!reply) {
      const { code, line } = stream;
      peer.session.send({ type: Type.PROBE_REPLY, code, line, generation: upstream.generation });
    }
    const listener = stream.service.probeListener;
    if (listener === undefined) return;
    const seen = { code: stream.code, provider: provider.label, params: stream.params, reply };
    this.core.guard('onProbe', () => listener.onProbe(seen), undefined);
  }

  private refused(peer: Peer, batch: Uint8Array, at: number): void {
    const upstream = this.find(peer, batch, at);
    const fields = upstream && peer.session.decode(payload.refused, batch, at);
    if (upstream === undefined || fields === undefined) return;
    if (fields.code === 'NOT_PROVIDED') {
      upstream.notProvided();
      return;
    }
    const { message, retryable } = fields;
    upstream.stream.upstreamEnded(upstream, { code: knownCode(fields.code, 'REFUSED'), message, retryable });
  }

  private ended(peer: Peer, batch: Uint8Array, at: number): void {
    const upstream = this.find(peer, batch, at);
    const fields = upstream && peer.session.decode(payload.end, batch, at);
    if (upstream === undefined || fields === undefined) return;
    // an END before any answer says that the provider took the request
    upstream.heard(peer.session.lastHeard);
    const { message, exit } = fields;
    // PROTOCOL.md M-62: a code of a newer provider must not read as a good end
    const code = fields.code === '' ? 'COMPLETED' : knownCode(fields.code, 'REFUSED');
    upstream.stream.upstreamEnded(upstream, { code, message, exit });
  }
}

/** Where the body of a message ends. */
export function messageEnd(batch: Uint8Array, at: number): number {
  return at + readU32(batch, at);
}

/** The body of the message at `at`, as a view. */
export function bodyOf(batch: Uint8Array, at: number): Uint8Array {
  return batch.subarray(bodyStart(batch, at), messageEnd(batch, at));
}

/** Ranges of an OFFER or WITHDRAW. */
export function rangesOf(pairs: readonly number[]): { from: number; to: number }[] {
  const ranges: { from: number; to: number }[] = [];
  for (let index = 0; index + 1 < pairs.length; index += 2) ranges.push({ from: pairs[index]!, to: pairs[index + 1]! });
  return ranges;
}
