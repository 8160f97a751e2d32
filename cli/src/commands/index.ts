import type { Command } from '../command.js';
import { kick, providers, reload, services, sessions, status, streams } from './admin.js';
import { check } from './check.js';
import { consume } from './consume.js';
import { dispatcher } from './dispatcher.js';
import { keygen } from './keygen.js';
import { provide } from './provide.js';
import { publish } from './publish.js';
import { declare, deleteQueue, peek, purge, queues, redeliver, remove } from './queues.js';
import { request } from './request.js';
import { sub } from './sub.js';

/** In the order of the help. */
export const commands: readonly Command[] = [
  dispatcher,
  check,
  sub,
  request,
  provide,
  publish,
  consume,
  keygen,
  status,
  services,
  streams,
  sessions,
  providers,
  kick,
  reload,
  queues,
  peek,
  purge,
  remove,
  redeliver,
  declare,
  deleteQueue,
];
