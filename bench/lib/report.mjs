import { median } from './rounds.mjs';

/** What a row says: medians, ratios of the same rounds, and whether they are what they should be. */
export function evaluate(row) {
  const medians = {};
  for (const [system, rounds] of Object.entries(row.results))
    medians[system] = median(rounds.map((each) => each[row.value]));
  const checks = row.targets.map((target) => {
    const actual = target.against === undefined ? medians.trunkline : ratio(row, target.against);
    return { ...target, actual, ok: actual === undefined ? undefined : meets(actual, target) };
  });
  const ratios = {};
  for (const system of Object.keys(row.results)) if (system !== 'trunkline') ratios[system] = ratio(row, system);
  return { medians, ratios, checks };
}

/** Median of Trunkline against the other in the same round, which cancels what disturbs both. */
function ratio({ results, value }, other) {
  const own = results.trunkline ?? [];
  const theirs = results[other] ?? [];
  const pairs = own.slice(0, theirs.length).map((each, index) => each[value] / theirs[index][value]);
  return median(pairs.filter(Number.isFinite));
}

function meets(actual, { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }) {
  return actual >= atLeast && actual <= atMost;
}

/** The lines of one row, ratios first. */
export function rowText(row, { medians, ratios, checks }) {
  const told = new Set(checks.map(({ against }) => against));
  const parts = checks.map((check) => checkText(check, row));
  for (const [system, value] of Object.entries(ratios)) {
    if (!told.has(system) && value !== undefined) parts.push(`${short(value)}× ${system}`);
  }
  const values = Object.entries(medians).map(([system, value]) => `${system} ${amount(value, row.unit)}`);
  return `${row.title.padEnd(44)} ${parts.join('   ')}\n    ${row.unit}: ${values.join(' · ')}`;
}

export function checkText({ against, atLeast, atMost, actual, ok }, { unit }) {
  const wanted = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`;
  const verdict = ok === undefined ? 'not measured' : ok ? 'ok' : 'NOT OK';
  const value = against === undefined ? amount(actual, unit) : `${short(actual)}× ${against}`;
  return `${value} (${wanted}: ${verdict})`;
}

export function short(value) {
  if (value === undefined || !Number.isFinite(value)) return '–';
  return value >= 100
    ? value.toFixed(0)
    : value
        .toPrecision(3)
        .replace(/(\.\d*?)0+$/, '$1')
        .replace(/\.$/, '');
}

export function amount(value, unit = '') {
  if (value === undefined || !Number.isFinite(value)) return '–';
  if (unit.endsWith('/s') && value >= 1e6) return `${(value / 1e6).toFixed(2)} M`;
  if (unit.endsWith('/s') && value >= 1e4) return `${(value / 1e3).toFixed(0)} k`;
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : short(value);
}

export function summary(rows) {
  const checks = rows.flatMap((row) => row.checks.map((check) => ({ ...check, row })));
  const missed = checks.filter(({ ok }) => ok === false);
  const open = checks.filter(({ ok }) => ok === undefined);
  const lines = [`${checks.length - missed.length - open.length} of ${checks.length} targets met`];
  for (const { row, ...check } of missed) lines.push(`  not ok: ${row.title}: ${checkText(check, row)}`);
  for (const { row, against } of open)
    lines.push(`  not measured: ${row.title}${against ? ` against ${against}` : ''}`);
  return lines.join('\n');
}
