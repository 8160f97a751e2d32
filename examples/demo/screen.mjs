// Shows subscribers and streams: redrawn in place on a terminal, as lines and now and then a table anywhere else.

const CLEAR = '\u001b[H\u001b[J';
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';

export class Screen {
  #address;
  #live = process.stdout.isTTY === true;

  constructor(address) {
    this.#address = address;
    // a reader that goes away, such as head, is no error
    process.stdout.on('error', () => process.emit('SIGTERM'));
    this.#write(this.#live ? `${HIDE_CURSOR}${CLEAR}` : `dispatcher at ${address}\n`);
  }

  /** From one picture to the next, ms. */
  get period() {
    return this.#live ? 500 : 3000;
  }

  line(text) {
    if (!this.#live) this.#write(`${printable(text).slice(0, 160)}\n`);
  }

  show(subscribers, streams) {
    if (!this.#live) {
      this.#write(`\n${streamTable(streams).join('\n')}\n\n`);
      return;
    }
    const width = process.stdout.columns ?? 120;
    const lines = [
      `Trunkline demo, dispatcher at ${this.#address}, Ctrl-C ends it`,
      `npx trunkline sub 2001 --params '{"intervalMs":1000}' --dispatcher ${this.#address}`,
      '',
      ...subscriberTable(subscribers),
      '',
      ...streamTable(streams),
    ];
    this.#write(`${CLEAR}${lines.map((line) => line.slice(0, width)).join('\n')}\n`);
  }

  last(subscribers, streams) {
    this.#write(`${this.#live ? CLEAR : '\n'}${subscriberTable(subscribers).join('\n')}\n\n`);
    this.#write(`${streamTable(streams).join('\n')}\n`);
  }

  close() {
    if (this.#live) this.#write(SHOW_CURSOR);
  }

  #write(text) {
    process.stdout.write(text);
  }
}

function subscriberTable(subscribers) {
  return table(
    ['subscriber', 'code', 'state', 'messages', 'last'],
    subscribers.map(({ name, code, state, messages, last }) => [name, code, state, messages, printable(last)]),
  );
}

function streamTable(streams) {
  return table(
    ['code', 'service', 'params', 'subscribers', 'lanes', 'upstream', 'in', 'out', 'status'],
    streams.map(({ code, service, params, subscribers, lanes, upstreams, messagesIn, messagesOut, status }) => [
      code,
      service,
      params,
      subscribers,
      lanes,
      upstreams.length,
      messagesIn,
      messagesOut,
      status,
    ]),
  );
}

function table(titles, rows) {
  const widths = titles.map((title, column) =>
    rows.reduce((width, row) => Math.max(width, String(row[column]).length), title.length),
  );
  const line = (cells) =>
    cells
      .map((cell, column) => {
        const text = String(cell);
        const right = typeof rows[0]?.[column] === 'number';
        return right ? text.padStart(widths[column]) : text.padEnd(widths[column]);
      })
      .join('  ')
      .trimEnd();
  return [line(titles), ...rows.map(line)];
}

/** Nothing that a log line brings may steer the terminal. */
function printable(text) {
  return text.replaceAll(/\p{Cc}/gu, ' ');
}
