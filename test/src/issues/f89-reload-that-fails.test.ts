import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { test } from 'node:test';
import { connect as connectProvider } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { quiet, Real } from './real.js';

const ten = Array.from({ length: 10 }, (_, index) => ({ code: 100 + index }));
const listen = ['tcp://127.0.0.1:0'];
const seventh = (change: object) => ({
  listen,
  services: ten.map((service, index) => (index === 6 ? { ...service, ...change } : service)),
});

/** Ways to make the file bad, and what is said about it. Bad JSON, rights and signals are in the process tests. */
const faults: Record<string, [spoil: (real: Real) => void, says: RegExp]> = {
  'a folder in its place': [
    ({ file }) => {
      rmSync(file, { force: true });
      mkdirSync(file);
    },
    /folder/,
  ],
  'a link that leads to itself': [
    ({ file }) => {
      rmSync(file, { recursive: true, force: true });
      symlinkSync(file, file);
    },
    /cannot be read/,
  ],
  'nothing in it': [(real) => real.write(''), /empty/],
  'only blanks in it': [(real) => real.write('\n \n'), /empty/],
  'another value than an object': [(real) => real.write('[]'), /object/],
  'cut in the middle': [(real) => real.write(JSON.stringify(seventh({})).slice(0, -5)), /before a closing/],
  'an unknown option in entry 7': [(real) => real.write(seventh({ probeAftr: '1s' })), /services\[6\]/],
  'a wrong type in entry 7': [(real) => real.write(seventh({ probeMisses: '3' })), /services\[6\]\.probeMisses/],
  'an unknown send handler in entry 7': [(real) => real.write(seventh({ sendHandler: 'nearest' })), /services\[6\]/],
  'an address in entry 7 that is none': [(real) => real.write(seventh({ providers: ['tcp://x'] })), /services\[6\]/],
};

test('F89: a reload with a bad file leaves the old table whole; a start with it is refused with the same text', async (t) => {
  const real = await Real.start(t, ten);
  const provider = await connectProvider(real.address, quiet);
  provider.provide({ from: 1, to: 1000 }, ({ code }) => code);
  const client = await connect(real.address, quiet);
  for (const [what, [spoil, says]] of Object.entries(faults)) {
    spoil(real);
    assert.equal(await real.daemon.reload(), undefined, what);
    const said = real.logged.at(-1) as { level: number; error: string };
    assert.equal(said.level, 50);
    assert.match(said.error, says, what);
    const running = real.daemon;
    const refused = await real.run().then(
      () => 'it started',
      (error: Error) => error.message,
    );
    assert.equal(refused, said.error, what);
    assert.equal(real.daemon, running);
    for (const { code } of ten) assert.equal((await client.request(code)).json(), code, what);
    await assert.rejects(client.request(99), { code: 'UNKNOWN_SERVICE' });
    rmSync(real.file, { recursive: true, force: true });
  }
  real.write({ listen, services: [...ten, { code: 99 }] });
  assert.ok(await real.daemon.reload());
  assert.equal((await client.request(99)).json(), 99);
  await Promise.all([client.close(), provider.close()]);
});
