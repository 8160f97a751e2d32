/** Why a file cannot be read, for people. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    ENOTDIR: 'there is no such file',
    EACCES: 'the file may not be read (permission denied)',
    EPERM: 'the file may not be read (not permitted)',
    EISDIR: 'this is a folder, not a file',
  };
  return reasons[code ?? ''] ?? `the file cannot be read (${message})`;
}
