import { encodeParams, payload, singleMessage, Type } from '@trunkline/proto';
import { Dealer } from 'zeromq';

/**
 * A process that says HELLO and asks for a code over a socket of its own, and then never reads or says anything. It
 * chooses its routing id itself if one is given.
 */
export async function ghost(address: string, code: number, routingId?: string): Promise<Dealer> {
  const dealer = new Dealer({ linger: 0, ...(routingId === undefined ? {} : { routingId }) });
  dealer.connect(address);
  const hello = payload.hello.encode({
    nonce: crypto.getRandomValues(new Uint8Array(8)),
    instance: crypto.getRandomValues(new Uint8Array(16)),
    name: 'ghost',
    heartbeatMs: 60_000,
    maxMessage: 1 << 20,
    credit: 10_000,
    token: '',
  });
  await dealer.send(singleMessage({ type: Type.HELLO }, hello));
  await dealer.receive();
  const request = payload.request.encode({ request: 1, params: encodeParams(undefined) });
  await dealer.send(singleMessage({ type: Type.REQUEST, code }, request));
  return dealer;
}
