import { writeFileSync } from 'node:fs';
import { flushMs, machine, packageVersion } from './lib/machine.mjs';
import { readOptions, usage } from './lib/options.mjs';
import { Missing, runCleanly } from './lib/processes.mjs';
import { loadQueueSystem, queueSystemNames } from './lib/queue-system.mjs';
import { evaluate, rowText, summary } from './lib/report.mjs';
import { loadSystem, systemNames } from './lib/system.mjs';

const files = ['throughput', 'latency', 'filters', 'storm', 'idle', 'slow', 'recovery', 'queues'];
const systemsOf = { live: systemNames, queues: queueSystemNames };

async function loadScenarios() {
  const modules = await Promise.all(files.map((name) => import(`./scenarios/${name}.mjs`)));
  return modules.flatMap((module) => module.default);
}

function chosen(scenarios, { group, only, quick }) {
  const own = scenarios.filter((scenario) => (scenario.group ?? 'live') === group);
  if (only !== undefined) return own.filter(({ name }) => only.some((word) => name.startsWith(word)));
  return quick ? own.filter((scenario) => scenario.quick.length > 0) : own;
}

/** Systems that are there, with their versions; the others are reported. */
async function available({ group, peers }) {
  const systems = new Map();
  const versions = {};
  const notes = [];
  const load = group === 'queues' ? loadQueueSystem : loadSystem;
  for (const name of systemsOf[group]) {
    if (name !== 'trunkline' && peers !== undefined && !peers.includes(name)) continue;
    const system = await load(name);
    try {
      versions[name] = { server: system.version(), client: clientText(system.client) };
      systems.set(name, system);
      if (system.promise !== undefined) notes.push(`${system.title} confirms what is ${system.promise}`);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      notes.push(`${system.title} is left out: ${error.message}`);
    }
  }
  return { systems, versions, notes };
}

/** A word about what disturbs, and what a flush costs. */
function busy({ cores, load, flushMs: flush }) {
  const texts = [];
  if (flush !== undefined) texts.push(`fdatasync ${flush} ms`);
  if (load > cores / 2) texts.push(`NOT QUIET: load ${load} before the run`);
  return texts.map((text) => `, ${text}`).join('');
}

function clientText(client) {
  const version = packageVersion(client);
  return version === 'unknown' ? client : `${client} ${version}`;
}

/** What a scenario is given. */
function benchFor(scenario, { options, systems, notes }) {
  const { quick, rounds } = options;
  const names = quick && scenario.quick.length > 0 ? scenario.quick : scenario.systems;
  return {
    quick,
    rounds,
    systems: names.map((name) => systems.get(name)).filter((system) => system !== undefined),
    note: (text) => notes.push(`${scenario.name}: ${text}`),
    /** A peer that fails is reported; Trunkline that fails ends the run. */
    async attempt(system, action) {
      try {
        return await action();
      } catch (error) {
        if (system.name === 'trunkline') throw error;
        notes.push(`${scenario.name}: ${system.title}: ${error.message}`);
        return undefined;
      }
    },
  };
}

async function main() {
  let options;
  try {
    options = readOptions(process.argv.slice(2), systemsOf);
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    return 2;
  }
  const scenarios = await loadScenarios();
  if (options.help || options.list) {
    console.log(options.help ? usage : scenarios.map(({ name, title }) => `${name.padEnd(16)} ${title}`).join('\n'));
    return 0;
  }
  const wanted = chosen(scenarios, options);
  if (wanted.length === 0) {
    console.error('no scenario has such a name; --list tells them');
    return 2;
  }
  const { systems, versions, notes } = await available(options);
  const begun = new Date();
  const host = { ...machine(), ...(options.group === 'queues' ? { flushMs: flushMs() } : {}) };
  console.log(
    `${host.cpu}, ${host.cores} cores, ${host.memoryGiB} GiB, ${host.system}, Node ${host.node}${busy(host)}`,
  );
  console.log(
    Object.entries(versions)
      .map(([name, { server, client }]) =>
        options.group === 'queues' ? `${name} ${server} (${client})` : `${name} ${server}`,
      )
      .join(', '),
  );
  console.log(`${options.rounds} round(s) each, in turns; "×" is Trunkline against the other in the same round\n`);
  const rows = [];
  const seconds = {};
  for (const scenario of wanted) {
    const from = Date.now();
    for (const row of await scenario.run(benchFor(scenario, { options, systems, notes }))) {
      const evaluated = evaluate(row);
      rows.push({ ...row, ...evaluated });
      console.log(rowText(row, evaluated));
    }
    seconds[scenario.name] = (Date.now() - from) / 1000;
  }
  console.log(`\n${summary(rows)}`);
  if (notes.length > 0) console.log(notes.map((note) => `note: ${note}`).join('\n'));
  console.log(`${Math.round((Date.now() - begun) / 1000)} s`);
  if (options.json !== undefined) {
    const { quick, rounds } = options;
    const result = { date: begun.toISOString(), machine: host, versions, quick, rounds, seconds, notes, rows };
    writeFileSync(options.json, `${JSON.stringify(result, undefined, 2)}\n`);
  }
  return 0;
}

await runCleanly(main);
