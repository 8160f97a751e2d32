import { DataMessage, Flag, type Session } from '@trunkline/proto';

/** Far enough from 0: bytes are given back once, whoever takes hold of the message later. */
const SPENT = -(2 ** 30);

/** Keeps the message's bytes from being given back to the sender's credit until as many `release`. */
export let hold: (message: Message) => void;
export let release: (message: Message) => void;
/** Called once, after the message was handed to everybody: true when nobody holds it and the caller consumes it. */
export let settle: (message: Message) => boolean;

/**
 * One response, or an application message. A view of the batch it came in, decoded where it is read. Its bytes count
 * against the credit of the session until the handlers are done with it (PROTOCOL.md §6).
 */
export class Message extends DataMessage {
  readonly #session: Session;
  /** Whoever is not done with it; the first is its delivery, until `settle`. */
  #holders = 1;

  constructor(session: Session, batch: Uint8Array, at: number) {
    super(batch, at);
    this.#session = session;
  }

  static {
    hold = (message) => {
      message.#holders++;
    };
    release = (message) => {
      if (settle(message)) message.#session.consume(message.length);
    };
    settle = (message) => {
      if (--message.#holders !== 0) return false;
      message.#holders = SPENT;
      return true;
    };
  }

  /** Part of what was kept before the subscription began (rule 9). */
  get snapshot(): boolean {
    return (this.flags & Flag.SNAPSHOT) !== 0;
  }

  /** Delivered before to this or another subscriber of its group, without an acknowledgement. */
  get redelivered(): boolean {
    return (this.flags & Flag.REDELIVERED) !== 0;
  }
}
