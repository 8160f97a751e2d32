import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { until } from '../../../support/wait.js';
import { dealer, frame, knock } from './raw.js';

test('whoever is beyond the open files of the process is sent away, and the others are served', async (t) => {
  const code = `
    import { ZmtpTransport } from '@trunkline/proto/zmtp';
    const log = { debug() {}, info() {}, error() {}, warn(fields, message) { console.log(message + ': ' + fields.error); } };
    const transport = new ZmtpTransport({ log });
    const listener = await transport.listen('tcp://127.0.0.1:0', { onBatch(link, batch) { link.send(batch); } });
    console.log(listener.address);
    process.stdin.on('data', () => console.log(transport.counters.faults));`;
  const shell = 'ulimit -n 100; exec "$0" --input-type=module -e "$1"';
  const child = spawn('sh', ['-c', shell, process.execPath, code], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  await until(() => lines.length === 1, 'it listens');
  const address = lines[0]!;
  const friend = await dealer(t, address);
  const strangers = await Promise.all(Array.from({ length: 45 }, () => knock(t, address)));
  await until(() => strangers.filter((stranger) => stranger.closed).length === 10, 'ten are sent away');
  friend.say(frame(0, 'hello'));
  await until(() => friend.frames.length === 1, 'the one who was there before is served');
  for (const stranger of strangers) stranger.socket.destroy();
  let served = false;
  await until(async () => {
    const late = await knock(t, address);
    await until(() => late.closed || late.heardBytes === 64, 'it is met or sent away');
    served = !late.closed;
    late.socket.destroy();
    return served;
  }, 'there is room again');
  child.stdin.write('?');
  await until(() => lines.length >= 3, 'it tells');
  assert.equal(lines[1], 'accepting a connection failed: more than 36 connections');
  assert.ok(Number(lines.at(-1)) >= 10);
  child.kill();
  await once(child, 'exit');
});
