import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const guard = new URL('end-with-parent.mjs', import.meta.url).href;
const trunkline = fileURLToPath(new URL('../../cli/bin/trunkline.js', import.meta.url));

/** How long a child may take to end before it is killed. */
const PATIENCE_MS = 5000;

/** The processes of the demo. None is left after `stop`. */
export class Children {
  #running = new Map();
  #stopping = false;
  #onLost;

  constructor(onLost) {
    this.#onLost = onLost;
    process.on('exit', () => {
      for (const child of this.#running.keys()) child.kill('SIGKILL');
    });
  }

  #spawn(name, args, stderr) {
    const child = spawn(process.execPath, ['--import', guard, ...args], {
      stdio: ['ignore', 'inherit', stderr, 'ipc'],
    });
    const ended = once(child, 'exit').then(() => {
      this.#running.delete(child);
      if (!this.#stopping) this.#onLost(`the ${name} has ended`);
    });
    this.#running.set(child, ended);
    return child;
  }

  /** A provider of this folder. */
  start(name, script, args) {
    return this.#spawn(name, [fileURLToPath(new URL(script, import.meta.url)), ...args], 'inherit');
  }

  /** Runs the daemon with its log in a file; resolves with the address at which it listens. */
  async startDispatcher(config, log) {
    const file = openSync(log, 'a');
    const child = this.#spawn('dispatcher', [trunkline, 'dispatcher', '--config', config], file);
    closeSync(file);
    for (;;) {
      const text = await readFile(log, 'utf8');
      const lines = text.split('\n').filter((line) => line.endsWith('}'));
      const entries = lines.map((line) => JSON.parse(line));
      if (entries.some(({ msg }) => msg === 'dispatcher started')) {
        return entries.find(({ msg }) => msg === 'listening').address;
      }
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(whyNot(text));
      await pause(20);
    }
  }

  /** SIGTERM for all; what is still there after a while is killed. */
  async stop() {
    this.#stopping = true;
    const all = [...this.#running];
    for (const [child] of all) child.kill('SIGTERM');
    const killer = setTimeout(() => {
      for (const [child] of all) child.kill('SIGKILL');
    }, PATIENCE_MS);
    await Promise.all(all.map(([, ended]) => ended));
    clearTimeout(killer);
  }
}

function whyNot(log) {
  const told = log.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  const hint = /ADDRESS_IN_USE|STORE_LOCKED/.test(log)
    ? '\nAnother demo or dispatcher runs there. End it, or give a configuration with another address: --config FILE'
    : '';
  return `the dispatcher did not start\n${told.join('\n')}${hint}`;
}
