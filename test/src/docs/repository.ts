import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

/** The folder that holds `package.json`, wherever the tests run. */
export const root = join(dirname(createRequire(import.meta.url).resolve('@trunkline/proto')), '..', '..');

export const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const skipped = new Set(['node_modules', 'dist', 'generated', 'coverage', '.git']);

/** Files below a folder of the repository, as paths from its root with forward slashes. */
export function filesUnder(folder: string, ending: string): string[] {
  const found: string[] = [];
  const walk = (path: string) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const full = join(path, entry.name);
      if (entry.isDirectory()) {
        if (!skipped.has(entry.name)) walk(full);
      } else if (entry.name.endsWith(ending)) {
        found.push(relative(root, full).replaceAll('\\', '/'));
      }
    }
  };
  walk(join(root, folder));
  return found.sort();
}

/** The cells of the rows of a Markdown table whose first cell matches. */
export function rows(markdown: string, first: RegExp): string[][] {
  return markdown
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf('|'))
        .split('|')
        .map((cell) => cell.trim()),
    )
    .filter((cells) => first.test(cells[0]!));
}

/** The text of a section: from its heading to the next one of the same or a higher level. */
export function section(markdown: string, heading: string): string {
  const level = /^#+/.exec(heading)![0].length;
  const start = markdown.indexOf(`\n${heading}`);
  if (start < 0) throw new Error(`no section "${heading}"`);
  const rest = markdown.slice(start + 1 + heading.length);
  const next = new RegExp(`\\n#{1,${level}} `).exec(rest);
  return next === null ? rest : rest.slice(0, next.index);
}
