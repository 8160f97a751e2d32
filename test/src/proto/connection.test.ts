import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Connection,
  type ConnectionOptions,
  OFFSET,
  payload,
  type Role,
  type Session,
  SessionHost,
  silentLog,
  singleMessage,
  TrunklineError,
  Type,
} from '@trunkline/proto';
import { MemoryNetwork, MemoryWorld } from '../support/memory-link.js';

const [A, B, C] = ['tcp://127.0.0.1:1', 'tcp://127.0.0.1:2', 'tcp://127.0.0.1:3'] as const;

class ConnectionWorld {
  readonly world = new MemoryWorld();
  readonly network = new MemoryNetwork(this.world);
  readonly told: string[] = [];
  readonly sessions: Session[] = [];

  /** Somebody who listens and welcomes, or says what `refuse` says. */
  async listen(address: string, refuse: () => TrunklineError | undefined = () => undefined): Promise<SessionHost> {
    const nothing = () => {};
    const host = new SessionHost({
      context: this.world.context(),
      maxSessions: 10,
      authenticate: refuse,
      events: {
        onOpen: (session) => this.sessions.push(session),
        onControl: nothing,
        onData: nothing,
        onCredit: nothing,
        onClosed: nothing,
      },
    });
    await this.network.listen(address, host);
    return host;
  }

  role(name = ''): Role {
    return {
      onOpen: () => this.told.push(`${name}open`),
      onControl: () => false,
      onData: () => false,
      onCredit: () => {},
      onLost: ({ code }, final) => this.told.push(`${name}${final ? 'over' : 'lost'} ${code}`),
    };
  }

  connect(addresses: readonly string[], options: Partial<ConnectionOptions> = {}): Connection {
    const connection = new Connection({
      context: this.world.context(),
      transport: this.network,
      addresses,
      log: silentLog,
      ...options,
    });
    connection.addRole(this.role());
    return connection;
  }
}

const busy = () => new TrunklineError('LIMIT_EXCEEDED', 'full', { retryable: true });

test('addresses are tried in order, each for its time, round and round', async () => {
  const made = new ConnectionWorld();
  const connection = made.connect([A, B, C], { attempt: 1000 });
  const tried: string[] = [];
  for (let step = 0; step < 7; step++) {
    tried.push(connection.address);
    await made.world.advance(1000);
  }
  assert.deepEqual(tried, [A, B, C, A, B, C, A]);
  await made.listen(B);
  await made.world.settle();
  assert.equal(connection.state, 'open');
  assert.equal(connection.address, B);
  await connection.close();
  await made.world.settle();
  assert.equal(made.world.timers.size, 0);
});

test('a link that is up and dead is dialled anew, also where there is one address; one that is down is left alone', async () => {
  const made = new ConnectionWorld();
  await made.listen(A);
  const connection = made.connect([A], { attempt: 1000 });
  await made.world.settle();
  assert.equal(connection.state, 'open');
  const [dead] = made.network.links(A);
  dead!.deaf = true;
  await made.world.advance(60_000);
  assert.equal(connection.state, 'open');
  const links = made.network.links(A);
  assert.ok(links.length === 1 && links[0] !== dead, 'the dead one is gone, one other is there');
  made.network.forget(A);
  made.network.cut(A);
  await made.world.advance(60_000);
  assert.equal(connection.state, 'connecting');
  assert.deepEqual(made.network.links(A), links);
});

test('an address whose peer refuses for now is left for the next at once', async () => {
  const made = new ConnectionWorld();
  await made.listen(A, busy);
  await made.listen(B);
  const connection = made.connect([A, B], { attempt: 60_000 });
  await made.world.advance(100);
  assert.equal(connection.state, 'open');
  assert.equal(connection.address, B);
});

test('peers that all refuse for now are asked less and less often', async () => {
  const made = new ConnectionWorld();
  let asked = 0;
  const refuse = () => {
    asked++;
    return busy();
  };
  await made.listen(A, refuse);
  await made.listen(B, refuse);
  const connection = made.connect([A, B]);
  await made.world.advance(60_000);
  assert.ok(asked >= 20 && asked <= 100, `asked ${asked} times in a minute`);
  assert.equal(connection.state, 'connecting');
  await connection.close();
  assert.equal(made.world.timers.size, 0);
});

test('a refusal that is final closes the connection with its code', async () => {
  const made = new ConnectionWorld();
  await made.listen(A, () => new TrunklineError('UNAUTHENTICATED'));
  const connection = made.connect([A]);
  await assert.rejects(Promise.all([connection.ready(), made.world.settle()]), { code: 'UNAUTHENTICATED' });
  assert.deepEqual(made.told, ['over UNAUTHENTICATED']);
  await assert.rejects(connection.ready(), { code: 'UNAUTHENTICATED' });
  assert.equal(made.world.timers.size, 0);
});

test('a peer of another version is final for both ends: one says BYE in its own version (M-88)', async () => {
  const made = new ConnectionWorld();
  await made.network.listen(A, {
    onBatch: (link) => {
      const bye = singleMessage({ type: Type.BYE });
      bye[OFFSET.version] = 2;
      link.send(bye);
    },
  });
  const connection = made.connect([A]);
  await assert.rejects(Promise.all([connection.ready(), made.world.settle()]), {
    code: 'VERSION_UNSUPPORTED',
    message: 'the peer speaks version 2, this end 1',
  });
  assert.deepEqual(made.told, ['over VERSION_UNSUPPORTED']);
  assert.equal(made.world.timers.size, 0);
});

test('a RESET costs one round trip, and a peer that resets again and again is asked less and less often', async () => {
  const made = new ConnectionWorld();
  await made.listen(A);
  const connection = made.connect([A]);
  await made.world.advance(5000);
  assert.deepEqual(made.told.splice(0), ['open']);
  const reset = (session: Session) => session.link.send(singleMessage({ type: Type.RESET }));
  reset(made.sessions[0]!);
  await made.world.settle();
  assert.deepEqual(made.told.splice(0), ['lost SESSION_LOST', 'open']);
  let resets = 0;
  const seen = new Set(made.sessions.slice(0, 1));
  for (let step = 0; step < 600; step++) {
    const last = made.sessions.at(-1)!;
    if (!seen.has(last)) {
      seen.add(last);
      resets++;
      reset(last);
    }
    await made.world.advance(100);
  }
  assert.ok(resets >= 15 && resets <= 80, `${resets} resets in a minute`);
  await made.world.advance(10_000);
  assert.equal(connection.state, 'open');
});

test('after a cut the peers come back spread over time (M-22)', async () => {
  const made = new ConnectionWorld();
  await made.listen(A);
  const connections = Array.from({ length: 10 }, () => made.connect([A]));
  await made.world.advance(2000);
  made.network.cut(A);
  await made.world.settle();
  made.network.restore(A);
  await made.world.settle();
  const times = new Set<number>();
  let left = connections.length;
  for (let step = 0; step < 110 && left > 0; step++) {
    await made.world.advance(1);
    const waiting = connections.filter(({ state }) => state !== 'open').length;
    if (waiting < left) times.add(step);
    left = waiting;
  }
  assert.equal(left, 0);
  assert.ok(times.size >= 5, `${times.size} moments`);
});

test('close resolves in every state, twice too, and leaves no timer', async () => {
  const states: [string, (made: ConnectionWorld, connection: Connection) => Promise<unknown>][] = [
    ['nobody listens', async () => {}],
    ['HELLO is unanswered', async (made) => void (await made.network.listen(A, { onBatch: () => {} }))],
    ['open', async (made) => made.listen(A)],
    [
      'cut',
      async (made) =>
        made
          .listen(A)
          .then(() => made.world.settle())
          .then(() => made.network.cut(A)),
    ],
    ['refused', async (made) => made.listen(A, () => new TrunklineError('FORBIDDEN'))],
    ['waits to say HELLO again', async (made) => made.listen(A, busy)],
  ];
  for (const [name, bring] of states) {
    const made = new ConnectionWorld();
    let disposed = 0;
    const connection = made.connect([A], { dispose: async () => void disposed++ });
    await bring(made, connection);
    await made.world.settle();
    await Promise.all([connection.close(), connection.close(), made.world.settle()]);
    await connection.close();
    assert.equal(connection.state, 'closed', name);
    assert.equal(disposed, 1, name);
    await made.world.advance(10_000);
    assert.equal(made.world.timers.size, made.sessions.filter(({ state }) => state === 'open').length * 2, name);
  }
});

test('a role that gives its connection up from within a call is heeded', async () => {
  const made = new ConnectionWorld();
  const host = await made.listen(A);
  let disposed = false;
  let done: Promise<void> | undefined;
  const connection = made.connect([A], {
    dispose: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      disposed = true;
    },
  });
  const leaving: Role = { ...made.role('second '), onOpen: () => void connection.close() };
  connection.addRole(leaving);
  connection.addRole(made.role('third '));
  await made.world.settle();
  assert.deepEqual(made.told, ['open', 'over CLOSED', 'second over CLOSED', 'third over CLOSED']);
  assert.equal(host.size, 0);

  disposed = false;
  const again = new Connection({
    context: made.world.context(),
    transport: made.network,
    addresses: [A],
    log: silentLog,
    dispose: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      disposed = true;
    },
  });
  const role: Role = {
    ...made.role(),
    onLost: () => {
      done = again.removeRole(role).then(() => assert.ok(disposed, 'resolved before everything was given back'));
    },
  };
  again.addRole(role);
  await made.world.settle();
  made.sessions.at(-1)!.close('KICKED');
  await made.world.settle();
  await done;
  assert.ok(disposed);
});

test('a role that closes the connection as it hears of a loss leaves no timer', async () => {
  const made = new ConnectionWorld();
  await made.listen(A);
  const connection = made.connect([A, B]);
  connection.addRole({ ...made.role(), onLost: (_reason, final) => void (final || connection.close()) });
  await made.world.settle();
  made.network.cut(A);
  await made.world.settle();
  assert.equal(connection.state, 'closed');
  assert.equal(made.world.timers.size, 0);
});

test('data and messages that no role knows are consumed and counted', async () => {
  const made = new ConnectionWorld();
  await made.listen(A);
  const connection = made.connect([A]);
  await made.world.settle();
  const [session] = made.sessions;
  const size = 100_000;
  assert.ok(session!.reserveData(size) >= 0);
  session!.target.set(singleMessage({ type: Type.RESPONSE }, new Uint8Array(size - 32)));
  session!.send({ type: Type.STATUS }, payload.status.encode({}));
  await made.world.settle();
  assert.equal(session!.outstanding, 0);
  assert.deepEqual(connection.session?.faults, { unexpected: 1 });
});
