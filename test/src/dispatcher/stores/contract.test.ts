import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { MemoryStore, SqliteStore } from '@trunkline/dispatcher/stores';
import { temporaryFolder } from '../../support/daemon.js';
import { SeededRandom } from '../../support/memory-link.js';
import { SimulatedDisk } from '../../support/simulated-store.js';
import { contract } from './contract.js';

contract({ name: 'memory', survives: false, place: () => ({ store: () => new MemoryStore() }) });

contract({
  name: 'simulated',
  survives: true,
  place: () => {
    const disk = new SimulatedDisk(new SeededRandom(), (_, run) => setImmediate(run));
    return { store: () => disk.attach() };
  },
});

contract({
  name: 'sqlite',
  survives: true,
  place: (context) => {
    const directory = mkdtempSync(join(temporaryFolder(context), 'store-'));
    return { store: () => new SqliteStore({ directory, logBytes: 256 * 1024, reserveBytes: 64 * 1024 }) };
  },
});
