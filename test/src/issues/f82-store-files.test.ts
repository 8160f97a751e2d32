import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { type ErrorCode, TrunklineError } from '@trunkline/proto';
import { connect } from '@trunkline/publisher';
import { Real } from './real.js';

const QUEUE = 4001;
const MESSAGES = 500;

/** What may be done to a file while the dispatcher is away. */
const DAMAGES: Readonly<Record<string, (file: string) => void>> = {
  deleted: (file) => rmSync(file),
  emptied: (file) => truncateSync(file, 0),
  'cut in half': (file) => truncateSync(file, Math.floor(readFileSync(file).length / 2)),
  'filled with NUL': (file) => writeFileSync(file, Buffer.alloc(readFileSync(file).length)),
  'replaced by text': (file) => writeFileSync(file, 'no store at all\n'.repeat(100)),
};

for (const [name, damage] of Object.entries(DAMAGES)) {
  test(`F82: a store file that was ${name}: one clear error, or the queue is marked, and never an empty queue`, async (t) => {
    const real = await Real.start(t, [{ code: QUEUE, kind: 'queue' }], { dataDirectory: 'data' });
    await using provider = await connect(real.address);
    await provider.publishMany(
      QUEUE,
      Array.from({ length: MESSAGES }, () => ({ body: 'x'.repeat(200) })),
    );
    await real.daemon.stop();
    const data = join(dirname(real.file), 'data');
    const kept = new Map(readdirSync(data).map((file) => [file, readFileSync(join(data, file))]));
    assert.ok(kept.size > 0);
    for (const file of kept.keys()) {
      if (kept.get(file)!.length === 0) continue;
      damage(join(data, file));
      real.logged.length = 0;
      let code: ErrorCode | undefined;
      try {
        await real.run();
      } catch (error) {
        assert.ok(error instanceof TrunklineError, `${file}: ${error}`);
        code = error.code;
        assert.match(error.message, /\w+ \w+/);
      }
      if (code !== undefined) assert.ok(code.startsWith('STORE_'), `${file}: ${code}`);
      else {
        const depth = real.dispatcher.queues.find(QUEUE)?.depth;
        const told = real.logged.filter(({ level }) => level === 50).length;
        assert.ok(depth === MESSAGES || told > 0, `${file}: ${depth} messages and no word of it`);
        await real.daemon.stop();
      }
      assert.ok(real.logged.length < 50, `${file}: ${real.logged.length} lines`);
      // as it was before the next one
      rmSync(data, { recursive: true });
      mkdirSync(data);
      for (const [each, content] of kept) writeFileSync(join(data, each), content);
    }
    // the files that were put back are a sound store
    await real.run();
    assert.equal(real.dispatcher.queues.find(QUEUE)!.depth, MESSAGES);
  });
}
