import type { PeekedMessage } from '@trunkline/subscriber/core';
import type { Input } from '../command.js';
import { type Command, integerOf } from '../command.js';
import { Exit, Failure } from '../exit.js';
import { printable } from '../json.js';
import { stdout } from '../output.js';
import { adminOptions, ask, field, list, withClient } from './admin.js';

interface Group {
  readonly name: string;
  readonly position: number;
  readonly waiting: number;
  readonly outstanding: number;
  readonly members: readonly object[];
}

export const queues = list('queues', 'list the queues and their groups', [
  field('code'),
  field('name'),
  field('storage'),
  field('messages'),
  field('bytes'),
  field('first'),
  field('last'),
  ['oldest', (entry) => `${Math.round(Number(entry.oldestAgeMs) / 1000)}s`],
  ['groups (position, waiting, out, members)', (entry) => (entry.groups as Group[]).map(groupText).join('  ') || '-'],
]);

function groupText({ name, position, waiting, outstanding, members }: Group): string {
  return `${name}(${position}, ${waiting}, ${outstanding}, ${members.length})`;
}

export const peek: Command = {
  name: 'peek',
  summary: 'look at messages of a queue without taking them',
  operands: 'CODE',
  count: { least: 1, most: 1 },
  options: {
    after: { value: 'SEQUENCE', help: 'begin behind this one; default: the oldest' },
    limit: { value: 'N', help: 'most messages, up to 1000; default 10' },
    ...adminOptions,
    json: { help: 'one JSON object a line' },
  },
  details: 'Exit codes: 3 refused, 4 no answer in time.',
  run: (input) =>
    withClient(input, 'peek', async (client) => {
      const after = input.integer('after', 0);
      const limit = input.integer('limit', 1, 1000);
      const params = { do: 'peek', code: input.code(), ...(after !== undefined && { after }), ...(limit && { limit }) };
      const { items } = (await ask(client, input, params)) as unknown as { items: PeekedMessage[] };
      for (const item of items) stdout.line(input.flag('json') ? JSON.stringify(item) : peeked(item));
      return Exit.OK;
    }),
};

function peeked({ sequence, ageMs, tag = '', key = '', attrs = {}, body, text, hex, size }: PeekedMessage): string {
  const parts = [
    String(sequence),
    `${Math.round(ageMs / 1000)}s`,
    tag === '' ? '' : `tag=${tag}`,
    key === '' ? '' : `key=${key}`,
    Object.keys(attrs).length === 0 ? '' : JSON.stringify(attrs),
    text ?? (hex === undefined ? JSON.stringify(body) : `0x${hex}`),
    size === undefined ? '' : `… (${size} bytes)`,
  ];
  return printable(parts.filter((part) => part !== '').join('  '));
}

/** A command that does one thing to a queue and tells one number or truth. */
function action(
  command: Pick<Command, 'name' | 'summary' | 'operands' | 'options' | 'details'> & { operandCount: number },
  params: (input: Input) => Readonly<Record<string, unknown>>,
  told: (answer: Readonly<Record<string, unknown>>) => string | undefined,
): Command {
  const { operandCount, options, ...rest } = command;
  return {
    ...rest,
    count: { least: operandCount, most: operandCount },
    options: { ...options, ...adminOptions, json: { help: 'the answer as JSON' } },
    run: (input) =>
      withClient(input, command.name, async (client) => {
        const answer = await ask(client, input, { code: input.code(), ...params(input) });
        const text = told(answer);
        if (input.flag('json')) stdout.line(JSON.stringify(answer));
        else if (text !== undefined) stdout.line(text);
        if (text !== undefined) return Exit.OK;
        if (input.flag('json')) return Exit.FAILED;
        throw new Failure(Exit.FAILED, 'there is no such thing');
      }),
  };
}

const codes = 'Exit codes: 1 there is no such thing, 3 refused, 4 no answer in time.';
const groupOption = { group: { value: 'NAME', help: 'the group' } };

function groupOf(input: Input): string {
  const group = input.text('group');
  if (group === undefined) throw new Failure(Exit.USAGE, '--group is needed');
  return group;
}

export const purge = action(
  {
    name: 'purge',
    summary: 'drop all messages of a queue',
    operands: 'CODE',
    operandCount: 1,
    options: {},
    details: codes,
  },
  () => ({ do: 'purge' }),
  ({ purged }) => `${purged} messages dropped`,
);

export const remove = action(
  {
    name: 'remove',
    summary: 'take one message out of a queue',
    operands: 'CODE SEQUENCE',
    operandCount: 2,
    options: {},
    details: codes,
  },
  (input) => ({
    do: 'remove',
    sequence: integerOf('the sequence', input.operands[1]!, 1, Number.MAX_SAFE_INTEGER),
  }),
  ({ removed }) => (removed === true ? 'removed' : undefined),
);

export const redeliver = action(
  {
    name: 'redeliver',
    summary: 'deliver again now what a group holds unacknowledged or has put off',
    operands: 'CODE',
    operandCount: 1,
    options: groupOption,
    details: codes,
  },
  (input) => ({ do: 'redeliver', group: groupOf(input) }),
  ({ redelivered }) => `${redelivered} messages`,
);

export const declare = action(
  {
    name: 'declare',
    summary: 'declare a queue that survives restarts, or change its options',
    operands: 'CODE',
    operandCount: 1,
    options: {
      name: { value: 'NAME', help: 'for people' },
      options: { value: 'JSON', help: 'as in a configuration file, such as \'{"maxAge":"24h"}\'' },
    },
    details: codes,
  },
  (input) => ({ do: 'declareQueue', name: input.text('name') ?? String(input.code()), options: optionsOf(input) }),
  ({ code }) => `queue ${code} declared`,
);

function optionsOf(input: Input): unknown {
  const text = input.text('options') ?? '{}';
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(Exit.USAGE, `--options: ${(error as Error).message}: ${JSON.stringify(text)}`);
  }
}

export const deleteQueue = action(
  {
    name: 'delete',
    summary: 'delete a queue that was declared at run time, or with --group one group of a queue',
    operands: 'CODE',
    operandCount: 1,
    options: { group: { value: 'NAME', help: 'forget this group and its position, nothing else' } },
    details: codes,
  },
  (input) => (input.text('group') === undefined ? { do: 'deleteQueue' } : { do: 'deleteGroup', group: groupOf(input) }),
  ({ deleted }) => (deleted === true ? 'deleted' : undefined),
);
