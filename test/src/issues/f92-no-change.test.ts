import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Real } from './real.js';

test('F92: the same content in other words is no change; a real one is', async (t) => {
  const services = [
    { code: 100, name: 'a', probeAfter: '60s', limits: { maxParams: '1KiB', maxStreams: 5 }, keep: { ring: 3 } },
    { code: '200-299' },
  ];
  const real = await Real.start(t, services, { drain: '1s', tokens: ['x', 'y'] });
  const listen = ['tcp://127.0.0.1:0'];
  const same: (object | string)[] = [
    { services, tokens: ['y', 'x'], drain: '1000ms', listen },
    JSON.stringify({ drain: '1s', listen, tokens: ['x', 'y'], services }, undefined, '\t').replaceAll('\n', '\r\n'),
    {
      $schema: './schema/trunkline.schema.json',
      listen,
      drain: '1s',
      tokens: ['x', 'y'],
      log: { level: 'info' },
      session: { heartbeat: '2s' },
      services: [
        {
          keep: { ring: 3 },
          limits: { maxStreams: 5, maxParams: 1024 },
          probeAfter: '1m',
          resendAfter: '2000ms',
          name: 'a',
          code: 100,
        },
        { name: '200-299', code: '200-299', providers: 'dynamic' },
      ],
    },
    { listen, drain: '1s', tokens: ['x', 'y'], services: [services[1], services[0]] },
  ];
  for (const content of same) {
    real.write(content);
    const report = await real.daemon.reload();
    assert.equal(report?.diff.unchanged, true, JSON.stringify(content));
    assert.equal(real.logged.at(-1)!.msg, 'reload: no change');
  }
  real.write({
    services: [{ ...services[0], probeAfter: '61s' }, services[1]],
    listen,
    drain: '1s',
    tokens: ['x', 'y'],
  });
  const { diff } = (await real.daemon.reload())!;
  assert.deepEqual(
    diff.services.changed.map(({ fields }) => fields),
    [['probeAfter']],
  );
});
