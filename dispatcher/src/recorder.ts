import { encodeParams, paramsKey, readU32, Timer } from '@trunkline/proto';
import type { Core } from './core.js';
import type { Hold } from './hold.js';
import type { PublishRefusal, Queues } from './queues/index.js';
import { withAttributes } from './queues/stored-message.js';
import type { Registry } from './registry.js';
import type { ServiceDefinition } from './service.js';
import type { Stream } from './stream.js';

/** A recorded stream that came to its end is asked for again after this, ms. */
const AGAIN = 1000;
const fatal = new TextDecoder('utf-8', { fatal: true });

/** Writes the responses of live services into queues, and keeps alive what is recorded whether or not anybody asks. */
export class Recorder {
  private readonly kept = new Map<string, { code: number; params: string; stream: Stream | undefined }>();
  private readonly timer = new Timer({ onTimer: () => this.openAll() });
  /** When a refusal was last logged. */
  private logged = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly core: Core,
    private readonly registry: Registry,
    private readonly queues: Queues,
    /** The hold of the run that is being recorded, made on demand. */
    private readonly currentHold: () => Hold | undefined,
  ) {
    core.record = (stream, buffer, start, end) => this.record(stream, buffer, start, end);
    registry.onGone = (stream) => this.gone(stream);
  }

  /** Keeps what the services say, and nothing else. */
  update(services: readonly ServiceDefinition[]): void {
    const wanted = new Map<string, { code: number; params: string }>();
    for (const { from: code, record } of services) {
      for (const value of record?.params ?? []) {
        const params = paramsKey(encodeParams(value));
        wanted.set(`${code}:${params}`, { code, params });
      }
    }
    for (const [key, { stream }] of this.kept) {
      if (wanted.has(key)) continue;
      this.kept.delete(key);
      stream?.unpin();
    }
    for (const [key, each] of wanted) if (!this.kept.has(key)) this.kept.set(key, { ...each, stream: undefined });
    this.openAll();
  }

  private openAll(): void {
    if (this.core.stopping) return;
    for (const each of this.kept.values()) {
      if (each.stream !== undefined) continue;
      const service = this.registry.service(each.code);
      if (service === undefined) continue;
      const stream = this.registry.find(each.code, each.params) ?? this.registry.open(service, each.code, each.params);
      each.stream = stream;
      stream.pinned = true;
      if (stream.upstreams.length === 0) stream.assign();
    }
  }

  private gone(stream: Stream): void {
    const each = this.kept.get(`${stream.code}:${stream.params}`);
    if (each?.stream !== stream) return;
    each.stream = undefined;
    if (!this.core.stopping) this.core.context.timers.start(this.timer, AGAIN);
  }

  private record(stream: Stream, buffer: Uint8Array, start: number, end: number): void {
    const { record } = stream.service.definition;
    const queue = record && this.queues.find(record.queue);
    if (queue === undefined) {
      if (record !== undefined)
        this.refused(stream, 1, { code: 'UNKNOWN_SERVICE', message: `no queue ${record.queue}` });
      return;
    }
    const attrs = { originCode: stream.code, originParams: shown(stream.params) };
    // a provider that is faster than the store waits for it, and nothing is left out
    const hold = this.currentHold();
    hold?.retain();
    let open = 1;
    const done = (count: number) => {
      open -= count;
      if (open === 0) hold?.release();
    };
    const confirm = {
      stored: (_number: number, count: number) => done(count),
      refused: (_number: number, count: number, reason: PublishRefusal) => {
        this.refused(stream, count, reason);
        done(count);
      },
    };
    for (let at = start; at < end; at += readU32(buffer, at)) {
      open++;
      queue.inlet.append(withAttributes(buffer, at, attrs), confirm);
    }
    done(1);
  }

  private refused({ code }: Stream, count: number, reason: Pick<PublishRefusal, 'code' | 'message'>): void {
    this.core.counters.unrecorded += count;
    const now = this.core.now();
    if (now - this.logged < AGAIN) return;
    this.logged = now;
    this.core.log.error({ service: code, code: reason.code, error: reason.message }, 'responses are not recorded');
  }

  close(): void {
    this.core.context.timers.stop(this.timer);
  }
}

/** Params as text where they are UTF-8. */
function shown(params: string): string | Uint8Array {
  const bytes = Uint8Array.from(params, (char) => char.charCodeAt(0));
  try {
    return fatal.decode(bytes);
  } catch {
    return bytes;
  }
}
