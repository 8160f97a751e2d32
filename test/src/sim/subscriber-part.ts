import type { Connection, TrunklineError } from '@trunkline/proto';
import { Client, type Message, type SubscribeOptions } from '@trunkline/subscriber/core';
import { Handle, type HandleListener, type HandleOptions, type Place, Segment } from './handle.js';
import { type Ledgers, textOf } from './ledger.js';
import { type Body, FILTERS, PARAMS, REFUSED_PARAMS } from './scenario.js';
import type { Dice, SimProcess, World } from './world.js';

export interface SubscriberWorld extends Required<HandleListener> {
  readonly world: World;
  readonly ledgers: Ledgers;
  readonly codes: readonly number[];
  readonly handles: Set<Handle>;
  nextHandle(): number;
  readonly calm: boolean;
  readonly calls: { made: number; answered: number; failed: number };
  callSettled(code: number, text: string, error: TrunklineError | undefined, body: Body | undefined): void;
}

const MOST_HANDLES = 6;
const GROUPS = ['red', 'blue'];

/** Longest time a handler takes once the faults have stopped, ms. */
const SLOWEST_IN_PEACE = 20;

/** The subscriber role of a process: the real SDK, used at random. */
export class SubscriberPart {
  readonly client: Client;
  readonly handles = new Set<Handle>();
  /** Where a handle that ended was, for another one to go on there. */
  private places: Place[] = [];
  private readonly dice: Dice;

  constructor(
    readonly name: string,
    readonly process: SimProcess,
    readonly connection: Connection,
    private readonly sim: SubscriberWorld,
  ) {
    this.dice = sim.world.dice;
    this.client = new Client(connection);
    this.act();
  }

  private act(): void {
    const { dice, sim } = this;
    sim.world.later(
      dice.between(50, 900),
      () => {
        if (sim.calm) return;
        const roll = dice.next();
        if (roll < 0.12) this.request();
        else if (roll < 0.75 && this.handles.size < MOST_HANDLES) this.subscribe();
        else if (this.handles.size > 0 && roll > 0.6) this.unsubscribe(dice.pick([...this.handles]));
        this.act();
      },
      this.process,
    );
  }

  request(): void {
    const { sim, dice } = this;
    const params = dice.pick(PARAMS.slice(0, 4));
    const code = 2001;
    sim.calls.made++;
    const timeoutMs = dice.pick([300, 5000, 20_000]);
    const aborter = new AbortController();
    if (dice.chance(0.2)) sim.world.later(dice.between(1, 500), () => aborter.abort(), this.process);
    this.client.request(code, { params: dice.pick(params.values), timeoutMs, signal: aborter.signal }).then(
      (message) => {
        sim.calls.answered++;
        sim.callSettled(code, params.text, undefined, message.json() as Body);
      },
      (error: TrunklineError) => {
        sim.calls.failed++;
        sim.callSettled(code, params.text, error, undefined);
      },
    );
  }

  private choose(): HandleOptions & { params: unknown } {
    const { dice } = this;
    const place = dice.chance(0.3) && this.places.length > 0 ? dice.pick(this.places) : undefined;
    const code = place?.code ?? dice.pick(this.sim.codes);
    // few distinct requests per code, so that they are shared
    const choice = dice.chance(0.03) ? REFUSED_PARAMS : PARAMS[(code + dice.between(0, 2) * 3) % PARAMS.length]!;
    const params = place === undefined ? choice : PARAMS.find(({ text }) => text === place.text)!;
    const mode = dice.pick(['broadcast', 'broadcast', 'broadcast', 'group', 'latest'] as const);
    return {
      code,
      text: params.text,
      params: dice.pick<unknown>(params.values),
      filter: dice.chance(0.4) ? dice.pick(FILTERS) : undefined,
      mode,
      group: mode === 'group' ? dice.pick(GROUPS) : '',
      start: place !== undefined ? 'after' : dice.pick(['kept', 'kept', 'live'] as const),
      overflow: dice.pick(['dropOldest', 'dropOldest', 'latest', 'disconnect', 'block'] as const),
      place,
    };
  }

  subscribe(): void {
    const { sim, dice } = this;
    const { params, ...options } = this.choose();
    const { place } = options;
    const handle = new Handle(sim.nextHandle(), this.name, options, sim.world.now);
    if (dice.chance(0.2)) handle.aborter = new AbortController();
    const slow = dice.chance(0.2) ? dice.between(20, 300) : 0;
    const fails = dice.chance(0.05);
    const asked: SubscribeOptions = {
      params,
      overflow: options.overflow,
      return: options.mode,
      start: place === undefined ? (options.start as 'kept' | 'live') : { after: place.sequence, epoch: place.epoch },
      ...(options.filter === undefined ? {} : { filter: options.filter.text }),
      ...(options.group === '' ? {} : { group: options.group }),
      ...(options.mode === 'latest' ? { rate: dice.pick([3, 10]) } : {}),
      ordered: dice.chance(0.8),
      ...(handle.aborter === undefined ? {} : { signal: handle.aborter.signal }),
    };
    sim.world.trace(`subscribe ${handle}`);
    this.handles.add(handle);
    sim.handles.add(handle);
    // `subscribe` returns before anything is delivered, so the handle has its subscription by then
    handle.subscription = this.client.subscribe(options.code, asked, (message) => {
      sim.world.spend(1);
      this.message(handle, message);
      if (fails && dice.chance(0.3)) throw new Error('the handler fails');
      if (slow === 0) return undefined;
      handle.running++;
      return new Promise<void>((resolve) => {
        sim.world.later(
          // in peace nobody is so slow that `disconnect` ends its session for ever anew, before its requests are accepted
          dice.between(1, sim.calm ? Math.min(slow, SLOWEST_IN_PEACE) : slow),
          () => {
            handle.running--;
            resolve();
          },
          this.process,
        );
      });
    });
    this.listen(handle);
  }

  private listen(handle: Handle): void {
    const { subscription } = handle;
    const { sim } = this;
    subscription.on('accepted', (event) => {
      const before = this.before(handle, textOf(event.epoch));
      const segment = new Segment(event, sim.ledgers, before);
      if (handle.segment !== undefined) handle.segment.open = false;
      handle.segment = segment;
      handle.segments.push(segment);
      sim.accepted(handle, segment);
    });
    subscription.on('status', (status) => {
      handle.lastStatus = status;
      if (status.state === 'disconnected') handle.losses++;
      sim.status(handle, status);
      if (status.state === 'disconnected' && handle.segment !== undefined) handle.segment.open = false;
    });
    subscription.on('gap', (gap) => sim.gap(handle, gap));
    subscription.on('error', (error) => {
      if (error.code !== 'HANDLER_FAILED') handle.refused = true;
      else if (error.cause instanceof Error && error.cause.message !== 'the handler fails') sim.world.fail(error.cause);
    });
    subscription.on('end', (end) => {
      handle.ended = end;
      this.handles.delete(handle);
      this.remember(handle);
      sim.end(handle, end);
    });
  }

  /** Up to where the handle has what the history of this epoch has for it. */
  private before(handle: Handle, epoch: string): number {
    const last = handle.segment;
    if (last === undefined) {
      const { place } = handle.options;
      return place !== undefined && textOf(place.epoch) === epoch ? place.sequence : 0;
    }
    if (last.epoch !== epoch) return 0;
    const top = last.delivered.reduce((most, { sequence }) => Math.max(most, sequence), 0);
    return Math.max(top, last.event.resumed ? last.before : 0, last.event.snapshot ? 0 : last.joined);
  }

  private remember(handle: Handle): void {
    const { subscription, options } = handle;
    if (subscription.epoch.length === 0 || options.filter !== undefined || options.mode !== 'broadcast') return;
    const { code, text } = options;
    this.places = [
      ...this.places.slice(-3),
      { code, text, sequence: subscription.sequence, epoch: subscription.epoch },
    ];
  }

  private message(handle: Handle, message: Message): void {
    const body = message.json() as Body;
    const { sequence, generation, snapshot, final, key } = message;
    const { segment } = handle;
    if (segment === undefined) throw new Error('a message before the answer');
    this.sim.message(handle, segment, { body, sequence, generation, snapshot, final, key });
  }

  unsubscribe(handle: Handle): void {
    this.sim.world.trace(`unsubscribe ${handle}`);
    if (handle.aborter !== undefined) handle.aborter.abort();
    else {
      handle.subscription.unsubscribe().then(
        () => {},
        (error) => this.sim.world.fail(error),
      );
    }
    handle.left = true;
    this.handles.delete(handle);
  }
}
