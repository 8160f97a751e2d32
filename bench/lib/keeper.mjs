// Outlives a bench that is killed: then it ends the servers, which would go on for ever, and removes their files.
import { rmSync } from 'node:fs';

const groups = new Set();
let folder;

process.on('message', ({ started, stopped, scratch }) => {
  if (started !== undefined) groups.add(started);
  if (stopped !== undefined) groups.delete(stopped);
  if (scratch !== undefined) folder = scratch;
});
process.on('disconnect', () => {
  for (const pid of groups) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // gone already
    }
  }
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
