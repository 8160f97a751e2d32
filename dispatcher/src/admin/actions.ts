import { TrunklineError } from '@trunkline/proto';
import type { Dispatcher, ReloadReport } from '../dispatcher.js';

type Fields = Readonly<Record<string, unknown>>;

/** What an operator can do to the dispatcher as a whole, by the name in `do`. */
export const actions: Readonly<Record<string, (dispatcher: Dispatcher, fields: Fields) => object>> = {
  kick: (dispatcher, { session }) => ({ kicked: dispatcher.kick(Number(session)) }),

  async reload({ options: { reread } }) {
    if (reread === undefined) throw new TrunklineError('OPTION_INVALID', 'this dispatcher has no file to read again');
    return told(await reread());
  },
};

function told({ diff, ended, moved }: ReloadReport): object {
  const { added, removed, changed } = diff.services;
  return {
    unchanged: diff.unchanged,
    added: added.map(({ name }) => name),
    removed: removed.map(({ name }) => name),
    changed: changed.map(({ after, fields }) => ({ name: after.name, fields })),
    live: diff.live,
    restart: diff.restart,
    ended,
    moved,
  };
}
