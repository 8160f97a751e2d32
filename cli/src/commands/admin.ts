import { TrunklineError } from '@trunkline/proto';
import type { Client } from '@trunkline/subscriber/core';
import { connectionOptions, openClient, refusalOf } from '../client.js';
import { type Command, type Input, integerOf } from '../command.js';
import { Exit, Failure } from '../exit.js';
import { stdout } from '../output.js';
import { table } from '../table.js';

const DEFAULT_TIMEOUT = 5000;
/** Entries asked for at once. */
const PAGE = 1000;

type Entry = Readonly<Record<string, unknown>>;

export const adminOptions = {
  json: { help: 'everything, as JSON' },
  timeout: { value: 'DURATION', help: 'how long to wait for an answer; default 5s' },
  ...connectionOptions,
} as const;

/** Asks the dispatcher itself, service code 0. */
export async function ask(client: Client, input: Input, params: object): Promise<Entry> {
  const timeoutMs = input.duration('timeout') ?? DEFAULT_TIMEOUT;
  try {
    return (await client.request(0, { params, timeoutMs })).json() as Entry;
  } catch (error) {
    if (!(error instanceof TrunklineError)) throw error;
    if (error.code !== 'TIMEOUT') throw new Failure(Exit.REFUSED, `${error.code}: ${error.message}`);
    throw new Failure(Exit.TIMEOUT, `TIMEOUT: no dispatcher answers at ${client.connection.address}`);
  }
}

async function everyPage(client: Client, input: Input, show: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let after: unknown = 0; after !== undefined; ) {
    const page = await ask(client, input, { show, after, limit: PAGE });
    entries.push(...(page.items as Entry[]));
    after = page.next;
  }
  return entries;
}

export async function withClient(
  input: Input,
  name: string,
  use: (client: Client) => Promise<number>,
): Promise<number> {
  const client = openClient(input, name);
  try {
    return await Promise.race([use(client), refusalOf(client)]);
  } finally {
    await client.close();
  }
}

type Column = readonly [title: string, value: (entry: Entry) => unknown];
export const field = (title: string, name = title): Column => [title, (entry) => entry[name]];

/** A list of the dispatcher: all of its pages, as a table or a JSON array. */
export function list(name: string, summary: string, columns: readonly Column[]): Command {
  return {
    name,
    summary,
    count: { least: 0, most: 0 },
    options: adminOptions,
    details: 'Exit codes: 3 refused, 4 no answer in time.',
    run: (input) =>
      withClient(input, name, async (client) => {
        const entries = await everyPage(client, input, name);
        if (input.flag('json')) stdout.line(`[${entries.map((entry) => JSON.stringify(entry)).join(',\n')}]`);
        else {
          const titles = columns.map(([title]) => title);
          const rows = entries.map((entry) => columns.map(([, value]) => value(entry)));
          for (const line of table(titles, rows)) stdout.line(line);
        }
        return Exit.OK;
      }),
  };
}

const codes = ({ from, to }: Entry): unknown => (from === to ? from : `${from}-${to}`);
const upstreams = (entry: Entry): string =>
  (entry.upstreams as { provider: string; state: string }[])
    .map(({ provider, state }) => `${provider}:${state}`)
    .join(' ');

export const services = list('services', 'list the forwarding table', [
  ['codes', codes],
  field('name'),
  field('streams'),
  field('subscribers'),
  field('without provider', 'withoutProvider'),
]);

export const streams = list('streams', 'list the streams: one for each distinct request', [
  field('code'),
  field('service'),
  field('params'),
  field('status'),
  field('generation'),
  field('subscribers'),
  field('lanes'),
  ['upstreams', upstreams],
  field('in', 'messagesIn'),
  field('out', 'messagesOut'),
]);

export const sessions = list('sessions', 'list the sessions', [
  field('id'),
  field('name'),
  field('link'),
  field('requests'),
  field('provider'),
  field('in', 'messagesIn'),
  field('out', 'messagesOut'),
  field('bytes in', 'bytesIn'),
  field('bytes out', 'bytesOut'),
  field('credit'),
  field('outbox', 'outboxBytes'),
]);

export const providers = list('providers', 'list the providers', [
  field('name'),
  field('kind'),
  field('up'),
  field('starts'),
  field('streams'),
  field('unanswered'),
  field('waiting'),
]);

export const status: Command = {
  name: 'status',
  summary: 'show how a dispatcher is doing',
  count: { least: 0, most: 0 },
  options: adminOptions,
  details: 'Exit codes: 3 refused, 4 no answer in time.',
  run: (input) =>
    withClient(input, 'status', async (client) => {
      const shown = await ask(client, input, { show: 'status' });
      if (input.flag('json')) stdout.line(JSON.stringify(shown));
      else {
        const { counters, ...fields } = shown;
        const all = { ...fields, ...(counters as object) };
        for (const line of table(['what', ''], Object.entries(all))) stdout.line(line);
      }
      return Exit.OK;
    }),
};

export const kick: Command = {
  name: 'kick',
  summary: 'end a session for good',
  operands: 'SESSION',
  count: { least: 1, most: 1 },
  options: { ...adminOptions, json: { help: '{"kicked": true} or {"kicked": false}' } },
  details:
    'The id of the session is that of `trunkline sessions`. Exit codes: 1 there is no such session, 4 no answer.',
  run: (input) =>
    withClient(input, 'kick', async (client) => {
      const session = integerOf('the session', input.operands[0]!, 1, Number.MAX_SAFE_INTEGER);
      const { kicked } = await ask(client, input, { do: 'kick', session });
      if (input.flag('json')) stdout.line(JSON.stringify({ kicked }));
      else if (kicked !== true) throw new Failure(Exit.FAILED, `there is no session ${session}`);
      return kicked === true ? Exit.OK : Exit.FAILED;
    }),
};

export const reload: Command = {
  name: 'reload',
  summary: 'let a dispatcher read its configuration file again',
  count: { least: 0, most: 0 },
  options: { ...adminOptions, json: { help: 'what changed, as JSON' } },
  details: 'The same as SIGHUP: the file is applied whole or not at all. Exit codes: 3 the file is wrong, 4 no answer.',
  run: (input) =>
    withClient(input, 'reload', async (client) => {
      const report = await ask(client, input, { do: 'reload' });
      if (input.flag('json')) stdout.line(JSON.stringify(report));
      else for (const line of changes(report)) stdout.line(line);
      return Exit.OK;
    }),
};

function changes({ unchanged, added, removed, changed, live, restart }: Entry): string[] {
  if (unchanged === true) return ['no change'];
  const services = (changed as { name: string; fields: string[] }[]).map(
    ({ name, fields }) => `${name} (${fields.join(', ')})`,
  );
  const parts = { added, removed, changed: services, applied: live, 'needs a restart': restart };
  return Object.entries(parts).flatMap(([title, names]) => {
    const list = (names as string[]).join(', ');
    return list === '' ? [] : [`${title}: ${list}`];
  });
}
