import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Reads process groups from standard input, "+ ID" and "- ID". Its end means that the parent is gone, however that
 * came about: groups that are left are ended then.
 */
const script = `
groups=
while read -r change id; do
  rest=
  for group in $groups; do [ "$group" = "$id" ] || rest="$rest $group"; done
  groups=$rest
  [ "$change" = - ] || groups="$groups $id"
done
[ -n "$groups" ] || exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
sleep "$1"
for group in $groups; do kill -s KILL -- "-$group"; done
`;

/**
 * A small process of its own that outlives a SIGKILL of this one and ends the commands it has started. It runs on a
 * POSIX shell; without one, a command notices the death of its parent only when it next writes.
 */
export class Guard {
  private child: ChildProcess | undefined;

  constructor(private readonly graceMs: number) {}

  add(group: number): void {
    this.child ??= this.start();
    this.tell(`+ ${group}`);
  }

  remove(group: number): void {
    this.tell(`- ${group}`);
  }

  /** Nothing of it keeps the process alive afterwards. */
  close(): void {
    this.child?.stdin?.end();
  }

  private tell(line: string): void {
    const stdin = this.child?.stdin;
    if (stdin?.writable) stdin.write(`${line}\n`);
  }

  private start(): ChildProcess {
    const seconds = String(Math.max(1, Math.ceil(this.graceMs / 1000)));
    // a group of its own: what is sent to the group of the parent must not reach it
    const child = spawn('/bin/sh', ['-c', script, 'trunkline-guard', seconds], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const ignore = () => {};
    child.on('error', ignore);
    child.stdin.on('error', ignore);
    return child;
  }
}
