import { connect } from 'node:net';

const SLAB_BYTES = 65_536;

/**
 * The least client there is: a socket, one `write` for everything that is sent in a turn, answers counted by `count`,
 * which is given what came and returns how many messages it confirms, and keeps what is incomplete to itself.
 */
export class RawClient {
  #socket;
  #waiting = [];
  #head = 0;
  #slab = Buffer.allocUnsafe(SLAB_BYTES);
  #from = 0;
  #at = 0;
  #scheduled = false;

  static async open(url, count) {
    const { hostname, port } = new URL(url.includes('://') ? url : `tcp://${url}`);
    const client = new RawClient();
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    client.#socket = socket;
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('data', (bytes) => client.#confirm(count(bytes)));
    return client;
  }

  write(text) {
    this.#socket.write(text);
  }

  /** Sends a frame with a body and takes note of who waits for its confirmation. */
  send(head, body, tail, stored) {
    const length = head.length + body.length + tail.length;
    if (this.#at + length > this.#slab.length) {
      this.#flush();
      this.#slab = Buffer.allocUnsafe(Math.max(SLAB_BYTES, length));
      this.#from = this.#at = 0;
    }
    for (const part of [head, body, tail]) {
      this.#slab.set(part, this.#at);
      this.#at += part.length;
    }
    this.#waiting.push(stored);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush() {
    if (this.#at > this.#from) this.#socket.write(this.#slab.subarray(this.#from, this.#at));
    this.#from = this.#at;
  }

  #confirm(count) {
    for (let left = count; left > 0; left--) this.#waiting[this.#head++]();
    if (this.#head < 10_000) return;
    this.#waiting = this.#waiting.slice(this.#head);
    this.#head = 0;
  }
}

/** Answers of which each has one `byte`, and nothing else has it. */
export function counting(byte) {
  return (bytes) => {
    let count = 0;
    for (let at = bytes.indexOf(byte); at >= 0; at = bytes.indexOf(byte, at + 1)) count++;
    return count;
  };
}
