// `node examples/queues/share.mjs`: the disk queue 4001 of config/demo.json, in a folder and at a port of its own.
// `seq 1 10000 | trunkline publish 4001`; two consumers of the group `workers` share the messages, one of the group
// `audit` gets all. In the middle the dispatcher is killed with kill -9 and started again: every message is acknowledged
// by someone, and what comes again is marked. Exits with 1 if anything was not so.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connect } from '@trunkline/subscriber';

const MESSAGES = Number(process.argv[2] ?? 10_000);
const CODE = '4001';
const root = new URL('../../', import.meta.url);
const trunkline = fileURLToPath(new URL('cli/bin/trunkline.js', root));
const folder = mkdtempSync(join(tmpdir(), 'trunkline-share-'));
const file = join(folder, 'trunkline.json');
const running = new Set();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function start(args, input = 'ignore') {
  const child = spawn(process.execPath, [trunkline, ...args], { stdio: [input, 'pipe', 'pipe'] });
  running.add(child);
  child.text = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    child.text.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    child.text.err += text;
  });
  child.ended = new Promise((resolve) => {
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve(signal ?? code);
    });
  });
  return child;
}

async function until(condition, what) {
  for (const deadline = performance.now() + 60_000; !(await condition()); await pause(20)) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
  }
}

async function startDispatcher() {
  const child = start(['dispatcher', '--config', file]);
  await until(() => child.text.err.includes('dispatcher started'), `the dispatcher has started: ${child.text.err}`);
  return child;
}

/** What `consume --json` has printed: one message a line. */
const messagesOf = (child) => {
  const { out } = child.text;
  return out
    .slice(0, out.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
};

const address = `tcp://127.0.0.1:${await freePort()}`;
const demo = JSON.parse(readFileSync(new URL('config/demo.json', root), 'utf8'));
const { $schema, ...configuration } = demo;
writeFileSync(file, JSON.stringify({ ...configuration, listen: [address], dataDirectory: join(folder, 'data') }));
let dispatcher = await startDispatcher();
const where = ['--dispatcher', address];
const consume = (group) => start(['consume', CODE, '--group', group, '--json', '--window', '100', ...where]);
const workers = [consume('workers'), consume('workers')];
const audit = consume('audit');
const groups = { workers, audit: [audit] };
const client = await connect(address);
/** What the dispatcher says of the queue; undefined while it is away. */
const queue = () =>
  client.queues.list().then(
    (queues) => queues.find(({ code }) => code === Number(CODE)),
    () => undefined,
  );
await until(async () => (await queue())?.groups.length === 2, 'both groups are there');

const publisher = start(['publish', CODE, '--in-flight', '500', ...where], 'pipe');
publisher.stdin.end(Array.from({ length: MESSAGES }, (_, index) => `${index + 1}\n`).join(''));
const count = (children) => children.reduce((sum, child) => sum + messagesOf(child).length, 0);
await until(() => count(workers) > MESSAGES / 10, 'some were consumed');
dispatcher.kill('SIGKILL');
await dispatcher.ended;
console.log(`kill -9 of the dispatcher: ${count(workers)} consumed by workers, ${count([audit])} by audit`);
dispatcher = await startDispatcher();
console.log('started again');
const published = await publisher.ended;
console.log(publisher.text.err.trim());
const done = ({ last, groups: all }) =>
  last >= MESSAGES && all.every(({ waiting, outstanding }) => waiting + outstanding === 0);
await until(async () => {
  const now = await queue();
  return now !== undefined && done(now);
}, 'everything is acknowledged');

let failed = published === 0 ? 0 : 1;
for (const [name, children] of Object.entries(groups)) {
  const messages = children.flatMap(messagesOf);
  const bodies = new Set(messages.map(({ body }) => String(body)));
  const firsts = messages.filter(({ deliveries }) => deliveries === 1);
  const doubled = firsts.length - new Set(firsts.map(({ sequence }) => sequence)).size;
  const sequences = new Set(messages.map(({ sequence }) => sequence)).size;
  const shares = children.map((child) => messagesOf(child).length).join(' + ');
  console.log(
    `${name}: ${shares} deliveries, ${bodies.size} messages of ${MESSAGES}, ` +
      `${messages.length - firsts.length} of them marked as redelivered, ${doubled} unmarked twice`,
  );
  if (bodies.size !== MESSAGES || sequences !== MESSAGES || doubled > 0) failed = 1;
}
for (const child of [...workers, audit]) child.kill('SIGTERM');
await Promise.all([...workers, audit].map(({ ended }) => ended));
await client.close();
dispatcher.kill('SIGTERM');
await dispatcher.ended;
console.log(failed === 0 ? 'every message was acknowledged by someone of each group' : 'FAILED');
process.exit(failed);
