// A thread that says when a tick is due: `workerData` is { begin, tickNs }. A timer of the event loop would be late by
// up to a millisecond, and waiting on the main thread would hold up its input and output.
import { parentPort, workerData } from 'node:worker_threads';
import { now } from './clock.mjs';

const cell = new Int32Array(new SharedArrayBuffer(4));
for (let due = workerData.begin; ; due += workerData.tickNs) {
  const left = (due - now()) / 1e6;
  if (left > 0) Atomics.wait(cell, 0, 0, left);
  parentPort.postMessage(due);
}
