import { type Dealer, Router, type SocketOptions } from 'zeromq';
import { TrunklineError } from '../../errors.js';
import { curveKeyBytes, z85 } from '../keys.js';
import { receiveLoop } from './receive.js';
import type { CurveOptions, ZmqSettings } from './settings.js';

/** @throws TrunklineError OPTION_INVALID */
export function checkCurve(curve: CurveOptions): void {
  assertKey(curve.publicKey, 'curve.publicKey');
  assertKey(curve.secretKey, 'curve.secretKey');
  if (typeof curve.serverKey === 'string') assertKey(curve.serverKey, 'curve.serverKey');
  for (const key of curve.allowedKeys ?? []) assertKey(key, 'curve.allowedKeys');
}

function assertKey(key: unknown, name: string): void {
  // The key itself stays out of the text: it may be a secret one in the wrong place.
  if (curveKeyBytes(key) !== undefined) return;
  throw new TrunklineError('OPTION_INVALID', `${name} must be a key of 40 characters (Z85)`);
}

const domain = 'trunkline';

export function serverSecurity(curve: CurveOptions): SocketOptions<Router> {
  return {
    curveServer: true,
    curvePublicKey: curve.publicKey,
    curveSecretKey: curve.secretKey,
    // With a domain a handshake is refused when nobody answers for it.
    ...(curve.allowedKeys === undefined ? {} : { zapDomain: domain }),
  };
}

/** @throws TrunklineError OPTION_INVALID when no server key is known for the address */
export function clientSecurity(curve: CurveOptions, address: string): SocketOptions<Dealer> {
  const { serverKey } = curve;
  const key = typeof serverKey === 'function' ? serverKey(address) : serverKey;
  if (key === undefined && typeof serverKey === 'function') return {};
  assertKey(key, `curve.serverKey for ${address}`);
  return {
    curvePublicKey: curve.publicKey,
    curveSecretKey: curve.secretKey,
    curveServerKey: key as string,
  };
}

/** Answers ZeroMQ's question (ZAP, RFC 27) whether a client's key is let in. There is one in a context. */
export class KeyGuard {
  allowed: ReadonlySet<string>;
  readonly #settings: ZmqSettings;
  #socket: Router | undefined;

  constructor(settings: ZmqSettings, allowed: Iterable<string>) {
    this.#settings = settings;
    this.allowed = new Set(allowed);
  }

  get ended(): boolean {
    return this.#socket === undefined;
  }

  /** From now on it answers, and keeps the process alive until `close`. */
  start(): void {
    if (this.#socket !== undefined) return;
    this.#socket = new Router({ context: this.#settings.context, linger: 0, sendTimeout: 0 });
    this.#socket.bindSync('inproc://zeromq.zap.01');
    void receiveLoop(this.#socket, this, this.#settings);
  }

  take(frames: Buffer[]): number {
    const [peer, empty, version, request, inDomain, , , mechanism, key] = frames;
    if (peer === undefined || empty === undefined || version === undefined || request === undefined) return 0;
    const known =
      version.toString() === '1.0' &&
      inDomain?.toString() === domain &&
      mechanism?.toString() === 'CURVE' &&
      key?.length === 32 &&
      this.allowed.has(z85(key));
    const answer = known ? ['200', 'OK'] : ['400', 'the key is not allowed'];
    this.#socket?.send([peer, empty, version, request, ...answer, '', '']).then(undefined, () => {});
    return 0;
  }

  stepEnd(): void {}

  close(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }
}
