// The table of what a run measured, for documents: `node bench/table.mjs RESULT.json`.
import { readFileSync } from 'node:fs';
import { amount, checkText, short } from './lib/report.mjs';

export function table({ rows }) {
  const lines = ['| what | Trunkline against | measured |', '|---|---|---|'];
  for (const row of rows) lines.push(`| ${row.title} | ${against(row)} | ${measured(row)} |`);
  return lines.join('\n');
}

function against(row) {
  const told = new Set(row.checks.map((check) => check.against));
  const checks = row.checks.map((check) => checkText(check, row).replace('NOT OK', '**missed**'));
  const others = Object.entries(row.ratios).filter(([system, value]) => !told.has(system) && value != null);
  return [...checks, ...others.map(([system, value]) => `${short(value)}× ${system}`)].join(' · ');
}

function measured({ unit, medians }) {
  const values = Object.entries(medians).filter(([, value]) => value != null);
  return `${unit}: ${values.map(([system, value]) => `${system} ${amount(value, unit)}`).join(' · ')}`;
}

const [input] = process.argv.slice(2);
if (input === undefined) {
  console.error('node bench/table.mjs RESULT.json');
  process.exitCode = 2;
} else {
  console.log(table(JSON.parse(readFileSync(input, 'utf8'))));
}
