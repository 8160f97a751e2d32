// Draws what a run measured: `node bench/chart.mjs RESULT.json CHART.svg`.
import { readFileSync, writeFileSync } from 'node:fs';
import { amount } from './lib/report.mjs';

const WIDTH = 860;
const LABEL_WIDTH = 140;
const VALUE_WIDTH = 90;
const BAR = 14;
const GAP = 3;
const GROUP_GAP = 16;
const TITLE = 22;

const colors = {
  trunkline: '#0b6e4f',
  limit: '#9aa5b1',
  nats: '#3a78c2',
  redis: '#c0392b',
  mosquitto: '#8e5aa8',
  rabbitmq: '#e67e22',
  'redis-stream': '#c0392b',
  'redis-raw': '#e0938a',
  'rabbitmq-quorum': '#e67e22',
  'rabbitmq-classic': '#f0b27a',
  jetstream: '#3a78c2',
  'jetstream-raw': '#97b9de',
};
/** Of what is no system but a circumstance, as in the rows of live messages beside a queue. */
const OTHER = '#9aa5b1';

/** Rows of one kind side by side; each row's bars share one scale, as the rows differ by orders of magnitude. */
const sections = [
  { title: 'Messages a second through durable queues (longer is better)', takes: (row) => row.unit === 'messages/s' },
  { title: 'Deliveries a second (longer is better)', takes: (row) => row.unit === 'deliveries/s' },
  {
    title: 'Latency, median and 99th percentile, µs (shorter is better, logarithmic)',
    takes: (row) => row.unit === 'µs' && /^(latency|queue-live)/.test(row.name),
    logarithmic: true,
  },
];

export function chart({ rows, machine, date }) {
  const parts = [];
  let y = 10;
  const put = (part) => parts.push(part);
  for (const section of sections) {
    const chosen = rows.filter(section.takes);
    if (chosen.length === 0) continue;
    y += TITLE;
    put(text(0, y, section.title, 'font-weight="bold" font-size="15"'));
    for (const row of chosen) y = drawRow(put, row, y + GROUP_GAP, section.logarithmic === true);
    y += GROUP_GAP;
  }
  y += TITLE;
  put(text(0, y, `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, ${date.slice(0, 10)}`, 'fill="#667"'));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 0 ${WIDTH + 20} ${y + 14}" font-family="sans-serif" font-size="12"><title>Trunkline beside its peers: throughput and latency</title>
<rect x="-10" width="${WIDTH + 20}" height="${y + 14}" fill="#fff"/>
${parts.join('\n')}
</svg>
`;
}

function drawRow(put, { title, unit, medians }, top, logarithmic) {
  let y = top + BAR;
  put(text(0, y, title, 'font-weight="bold"'));
  y += GAP * 2;
  const entries = Object.entries(medians).filter(([, value]) => value > 0);
  const most = Math.max(...entries.map(([, value]) => value));
  for (const [system, value] of entries) {
    const share = logarithmic ? Math.log10(1 + value) / Math.log10(1 + most) : value / most;
    const width = Math.max(1, share * (WIDTH - LABEL_WIDTH - VALUE_WIDTH));
    put(text(LABEL_WIDTH - 8, y + BAR - 3, system, 'text-anchor="end"'));
    put(
      `<rect x="${LABEL_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${colors[system] ?? OTHER}"/>`,
    );
    put(text(LABEL_WIDTH + width + 6, y + BAR - 3, amount(value, unit)));
    y += BAR + GAP;
  }
  return y;
}

function text(x, y, content, attributes = '') {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${Math.round(x)}" y="${y}" ${attributes}>${escaped}</text>`;
}

const [input, output] = process.argv.slice(2);
if (input === undefined || output === undefined) {
  console.error('node bench/chart.mjs RESULT.json CHART.svg');
  process.exitCode = 2;
} else {
  writeFileSync(output, chart(JSON.parse(readFileSync(input, 'utf8'))));
}
