import type { Checker, Watched } from './checker.js';
import { Damage, Flow, NothingLeft } from './flow.js';
import { Arrivals, Linger, OptionsStay, ProviderCalls } from './provider-side.js';
import { Answers, Ends, Generations, Sequences, Silence } from './subscriber-side.js';
import { OneUpstream, OwnAnswers, Probe, RequestWindow, Resend } from './upstreams.js';
import type { WireBook } from './wire-book.js';

export { Checker, type Watched, type WireMessage } from './checker.js';
export { messagesOf, WireBook } from './wire-book.js';

/** One of each. */
export function makeCheckers(sim: Watched, book: WireBook): Checker[] {
  return [
    new OneUpstream(sim),
    new Resend(sim, book),
    new RequestWindow(sim),
    new Probe(sim, book),
    new OwnAnswers(sim, book),
    new ProviderCalls(sim),
    new OptionsStay(sim),
    new Linger(sim),
    new Arrivals(sim),
    new Answers(sim),
    new Silence(sim),
    new Generations(sim),
    new Ends(sim),
    new Sequences(sim),
    new Flow(sim),
    new Damage(sim),
    new NothingLeft(sim),
  ];
}
