// What Linux tells of itself in /proc. A sampler is made for each subscription; each call returns the values since the
// one before, one entry per item, so the first call of a rate returns nothing.

import { existsSync, readFileSync } from 'node:fs';

const read = (name) => readFileSync(`/proc/${name}`, 'utf8').trimEnd().split('\n');
const round = (value) => Math.round(value * 100) / 100;

/** Values per second of counters that only grow, by key. */
function rates(readCounters) {
  let before = new Map(readCounters());
  let then = performance.now();
  return () => {
    const now = performance.now();
    const seconds = (now - then) / 1000;
    const counters = new Map(readCounters());
    const entries = [];
    for (const [key, values] of seconds > 0 ? counters : []) {
      const old = before.get(key);
      if (old === undefined) continue;
      const perSecond = Object.entries(values).map(([name, value]) => [name, round((value - old[name]) / seconds)]);
      entries.push({ key, ...Object.fromEntries(perSecond) });
    }
    before = counters;
    then = now;
    return entries;
  };
}

/** Busy time in percent: of all cores as "all", and of each by its number. */
function cpu() {
  const readTimes = () =>
    read('stat')
      .filter((line) => line.startsWith('cpu'))
      .map((line) => {
        const [name, ...fields] = line.split(/\s+/);
        // guest times, the last two, are part of user times already
        const times = fields.slice(0, 8).map(Number);
        const idle = times[3] + times[4];
        const total = times.reduce((sum, time) => sum + time, 0);
        return [name === 'cpu' ? 'all' : name.slice(3), { idle, total }];
      });
  let before = new Map(readTimes());
  return () => {
    const times = new Map(readTimes());
    const entries = [];
    for (const [key, { idle, total }] of times) {
      const old = before.get(key);
      const passed = old === undefined ? 0 : total - old.total;
      if (passed > 0) entries.push({ key, busy: round(100 * (1 - (idle - old.idle) / passed)) });
    }
    before = times;
    return entries;
  };
}

/** In MiB. */
function memory() {
  return () => {
    const kilobytes = Object.fromEntries(
      read('meminfo').map((line) => {
        const [name, value] = line.split(/:\s+/);
        return [name, Number.parseInt(value, 10)];
      }),
    );
    const mebibytes = (name) => Math.round((kilobytes[name] ?? 0) / 1024);
    const total = mebibytes('MemTotal');
    const available = mebibytes('MemAvailable');
    return [{ total, available, used: total - available, usedPercent: round((100 * (total - available)) / total) }];
  };
}

function load() {
  return () => {
    const [one, five, fifteen, tasks] = read('loadavg')[0].split(' ');
    const [running, all] = tasks.split('/').map(Number);
    return [{ load1: Number(one), load5: Number(five), load15: Number(fifteen), running, tasks: all }];
  };
}

const SECTOR_BYTES = 512;

/** Bytes a second of each disk, without its partitions. */
function disks() {
  return rates(() =>
    read('diskstats')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , name]) => existsSync(`/sys/block/${name}`) && !/^(loop|ram)/.test(name))
      .map(([, , name, ...fields]) => [
        name,
        {
          readBytes: fields[2] * SECTOR_BYTES,
          writtenBytes: fields[6] * SECTOR_BYTES,
          operations: +fields[0] + +fields[4],
        },
      ]),
  );
}

/** Bytes and packets a second of each interface. */
function network() {
  return rates(() =>
    read('net/dev')
      .slice(2)
      .map((line) => line.split(':'))
      .map(([name, counters]) => {
        const fields = counters.trim().split(/\s+/).map(Number);
        return [
          name.trim(),
          { receivedBytes: fields[0], receivedPackets: fields[1], sentBytes: fields[8], sentPackets: fields[9] },
        ];
      }),
  );
}

/** By service code. */
export const samplers = [
  [2001, cpu],
  [2002, memory],
  [2003, load],
  [2004, disks],
  [2005, network],
];
