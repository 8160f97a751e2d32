import { execFileSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { findProgram, scratch } from './processes.mjs';
import { median } from './rounds.mjs';

const require = createRequire(import.meta.url);
/** Of Linux on all common machines. */
const TICKS_PER_SECOND = 100;

export function machine() {
  const processors = cpus();
  return {
    cpu: processors[0]?.model ?? 'unknown',
    cores: processors.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    zeromq: packageVersion('zeromq'),
    /** Processes that wanted to run in the minute before: what else the machine was doing. */
    load: Math.round(loadavg()[0] * 10) / 10,
  };
}

/** What the device under the temporary folder takes to flush 26 KB that were appended to a file, ms. */
export function flushMs() {
  const file = openSync(join(scratch(), 'flush'), 'a');
  const bytes = new Uint8Array(26_000);
  const times = Array.from({ length: 100 }, () => {
    writeSync(file, bytes);
    const begin = performance.now();
    fdatasyncSync(file);
    return performance.now() - begin;
  });
  closeSync(file);
  return Math.round(median(times) * 1000) / 1000;
}

export function packageVersion(name) {
  const paths = require.resolve.paths(name) ?? [];
  for (const path of paths) {
    try {
      return JSON.parse(readFileSync(`${path}/${name}/package.json`, 'utf8')).version;
    } catch {}
  }
  return 'unknown';
}

/** The first thing that looks like a version in what a program prints. @throws Missing */
export function programVersion(program, args) {
  const text = execFileSync(findProgram(program), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return /\d+\.\d+(\.\d+)?/.exec(text)?.[0] ?? 'unknown';
}

/** Resident bytes of a process; undefined where the system does not tell. */
export function residentBytes(pid) {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return kilobytes === null ? undefined : Number(kilobytes[1]) * 1024;
  } catch {
    return undefined;
  }
}

/** Seconds of processor time of a process so far; undefined where the system does not tell. */
export function cpuSeconds(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** Share of one core that a process uses while `action` runs, with what that returns. */
export async function cpuShare(pid, action) {
  const before = cpuSeconds(pid);
  const begin = process.hrtime.bigint();
  const value = await action();
  const after = cpuSeconds(pid);
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  return { value, cpu: before === undefined || after === undefined ? undefined : (after - before) / seconds };
}
