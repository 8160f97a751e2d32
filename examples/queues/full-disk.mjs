// `node examples/queues/full-disk.mjs`: what happens on a full disk. In a mount namespace of its own (`unshare -m`: root
// is needed, or a system that allows `unshare -r`) the data directory is a tmpfs of 32 MiB, filled to the brim. Publishes
// are refused with a code, deliveries and acknowledgements go on, and publishing resumes by itself when there is room.
// Prints the sequence; exits with 1 if anything was not so, with 2 where nothing may be mounted.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Daemon } from '@trunkline/dispatcher';
import { connect as connectPublisher } from '@trunkline/publisher';
import { connect } from '@trunkline/subscriber';
import { pino } from 'pino';

const CODE = 4001;
const BODY = Buffer.alloc(10_000, 'x');
const [folder] = process.argv.slice(2);

if (folder === undefined) process.exit(onSmallDevice());

/** Runs this script again where a new folder is a device of 32 MiB. */
function onSmallDevice() {
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-full-'));
  const namespaces = process.getuid?.() === 0 ? ['-m'] : ['-r', '-m'];
  const mount = 'mount -t tmpfs -o size=32m none "$2"';
  const run = (command, stdio) => {
    const args = [...namespaces, 'sh', '-c', command, process.execPath, fileURLToPath(import.meta.url), directory];
    return spawnSync('unshare', args, { stdio });
  };
  try {
    if (run(mount, 'ignore').status !== 0) {
      console.error('a device cannot be mounted here: run this as root, on Linux');
      return 2;
    }
    return run(`${mount} && exec "$0" "$1" "$2"`, 'inherit').status ?? 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const began = performance.now();
function say(text) {
  console.log(`${((performance.now() - began) / 1000).toFixed(2).padStart(6)} s  ${text}`);
}

async function until(condition, what) {
  for (const deadline = performance.now() + 20_000; !(await condition()); await pause(20)) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
  }
}

/** Takes all that is left of the device. */
function fill(file) {
  const open = openSync(file, 'a');
  for (const size of [65536, 4096, 1]) {
    try {
      for (;;) writeSync(open, Buffer.alloc(size));
    } catch (error) {
      if (error.code !== 'ENOSPC') throw error;
    }
  }
  closeSync(open);
}

const file = join(folder, 'trunkline.json');
const filler = join(folder, 'filler');
writeFileSync(
  file,
  JSON.stringify({
    listen: ['tcp://127.0.0.1:0'],
    services: [{ code: CODE, kind: 'queue' }],
    dataDirectory: 'data',
  }),
);
const daemon = await Daemon.start({ file, log: pino({}, { write: () => {} }) });
const [address] = daemon.dispatcher.addresses;
say(`dispatcher at ${address}, data directory on a device of 32 MiB`);
// one connection for both: refused publishes must not hold up acknowledgements
const client = await connect(address);
const publisher = await connectPublisher(client.connection);
const confirmed = new Set();
const refusals = new Map();
let number = 0;

async function publish() {
  number++;
  try {
    confirmed.add(await publisher.publish(CODE, BODY, { key: `${number}` }));
    return undefined;
  } catch (error) {
    refusals.set(error.code, (refusals.get(error.code) ?? 0) + 1);
    return error;
  }
}

// a group that has its messages, and one that will need them later
const held = [];
const consumption = client.consume(CODE, { group: 'g', window: 500, ack: 'manual' }, (message) => held.push(message));
await consumption.accepted;
let refusal;
while (refusal === undefined) refusal = await publish();
say(`${confirmed.size} messages of 10 kB stored, then refused: ${refusal.code}: ${refusal.message}`);
fill(filler);
say(`filled to the brim: ${statfsSync(folder).bavail} blocks are free`);
for (let round = 0; round < 20; round++) await publish();
say(`20 more publishes refused: ${[...refusals].map(([code, count]) => `${count} × ${code}`).join(', ')}`);

await until(() => held.length === 500, 'the window is full');
let acked = 0;
const ack = async (count) => {
  await Promise.all(held.splice(0, count).map((message) => message.ack()));
  acked += count;
};
await ack(100);
say(`100 acknowledgements confirmed as stored, on the full device`);
await until(() => held.length === 500, 'deliveries go on');
say(`100 more messages were delivered meanwhile`);
const stillFull = await publish();
say(stillFull === undefined ? 'a publish was stored' : `publishing is still refused: ${stillFull.code}`);

rmSync(filler);
say('the filler is gone: there is room');
let tries = 0;
await until(async () => {
  tries++;
  return (await publish()) === undefined;
}, 'publishing resumes');
say(`publishing resumed by itself, at try ${tries}`);
await until(async () => {
  await ack(held.length);
  return acked === confirmed.size;
}, 'all is acknowledged');
const [queue] = await client.queues.list();
say(`all ${acked} confirmed messages delivered and acknowledged; ${queue.messages} are left`);
const failed = queue.last !== confirmed.size || refusals.get('STORE_FULL') !== number - confirmed.size;
say(
  failed
    ? `FAILED: ${queue.last} are stored, ${confirmed.size} were confirmed`
    : 'nothing was lost, nothing refused was stored',
);
await Promise.all([client.close(), publisher.close()]);
await daemon.stop();
process.exitCode = failed ? 1 : 0;
