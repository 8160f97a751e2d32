import { printable } from './json.js';

/** Rows below their titles; columns of numbers stand to the right. */
export function table(titles: readonly string[], rows: readonly (readonly unknown[])[]): string[] {
  const cells = rows.map((row) => row.map(cellText));
  const widths = titles.map((title, column) =>
    cells.reduce((width, row) => Math.max(width, row[column]!.length), title.length),
  );
  const numeric = titles.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'));
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, column) => (numeric[column] ? text.padStart(widths[column]!) : text.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd();
  return [line(titles), ...cells.map(line)];
}

function cellText(value: unknown): string {
  if (typeof value === 'string') return printable(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value === undefined || value === null
    ? ''
    : printable(typeof value === 'number' ? String(value) : JSON.stringify(value));
}
