import type { DataMessage } from '@trunkline/proto';

/** JSON in which integers beyond 2^53 keep their digits; bytes become {"base64": …}, NaN and infinities text. */
export function toJson(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && !Number.isFinite(value)) return JSON.stringify(String(value));
  if (value instanceof Uint8Array) return JSON.stringify({ base64: Buffer.from(value).toString('base64') });
  if (Array.isArray(value)) return `[${value.map(toJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${toJson(field)}`).join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

/** One line of JSON for a response. @throws TrunklineError META_INVALID */
export function messageJson(message: DataMessage & { readonly snapshot?: boolean }): string {
  const { code, sequence, generation, snapshot = false, tag, key, attrs } = message;
  const head = toJson({ code, sequence, generation, snapshot, tag, key, attrs });
  return `${head.slice(0, -1)},"body":${bodyJson(message)}}`;
}

function bodyJson(message: DataMessage): string {
  const text = bodyText(message);
  if (text === undefined) return toJson(message.body);
  return jsonOf(message, text) ?? JSON.stringify(text);
}

/** The body as text; undefined when it is not UTF-8. */
export function bodyText(message: DataMessage): string | undefined {
  try {
    return message.text();
  } catch {
    return undefined;
  }
}

/** The text of a JSON body on one line, with its numbers as they are; undefined when it is none. */
function jsonOf({ isJson }: DataMessage, text: string): string | undefined {
  if (!isJson) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  // a line break inside of a JSON string is always escaped
  return text.trim().replaceAll(/[\r\n]+/g, ' ');
}

/** Text for people: no control characters that a terminal would obey. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (char) =>
    char === '\t' ? char : `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/** One line for people. @throws TrunklineError META_INVALID */
export function messageLine(message: DataMessage & { readonly snapshot?: boolean }): string {
  const { sequence, snapshot = false, tag, key, attrs, body } = message;
  const text = bodyText(message) ?? `base64:${Buffer.from(body).toString('base64')}`;
  const parts = [
    snapshot ? `${sequence} (kept)` : String(sequence),
    tag === '' ? '' : `tag=${tag}`,
    key === '' ? '' : `key=${key}`,
    message.isJson || Object.keys(attrs).length === 0 ? '' : toJson(attrs),
    text,
  ];
  return printable(parts.filter((part) => part !== '').join('  '));
}
