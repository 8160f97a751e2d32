import { TrunklineError } from '../errors.js';

/**
 * What an address text says. An IPv6 host stands without its brackets; port 0 (also written `*`) asks the system for a
 * free one and exists for listening only, as does the host `*` (every IPv4 interface).
 */
export type Address =
  | { readonly scheme: 'tcp'; readonly host: string; readonly port: number }
  | { readonly scheme: 'ipc'; readonly path: string };

/** How many bytes the path of a Unix domain socket may have. */
export const maxIpcPathBytes = 107;

/**
 * Reads `tcp://host:port` or `ipc://path`. ZeroMQ itself takes port 70000 and unknown hosts without a word, so this is
 * where an address is checked.
 * @throws TrunklineError ADDRESS_INVALID, with the reason
 */
export function parseAddress(text: string, options: { listen?: boolean } = {}): Address {
  if (typeof text !== 'string') throw invalid(String(text), 'an address is a text');
  const split = text.indexOf('://');
  if (split < 0) throw invalid(text, 'it has no scheme: write tcp://host:port or ipc://path');
  const scheme = text.slice(0, split);
  const rest = text.slice(split + 3);
  if (scheme === 'tcp') return parseTcp(text, rest, options.listen === true);
  if (scheme === 'ipc') return parseIpc(text, rest);
  throw invalid(text, `the scheme "${scheme}" is unknown: tcp and ipc are`);
}

/** The text of an address, as `parseAddress` reads it. */
export function formatAddress(address: Address): string {
  if (address.scheme === 'ipc') return `ipc://${address.path}`;
  return `tcp://${hostText(address.host)}:${address.port}`;
}

/** A host as it stands before `:port`. */
export function hostText(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}

/** True for an IPv6 address without brackets; a host name never holds a colon. */
export function isIPv6(host: string): boolean {
  return host.includes(':');
}

/** True for a host that has to be looked up before it can be dialled. */
export function isHostName(host: string): boolean {
  return host !== '*' && !isIPv6(host) && !/^[0-9.]+$/.test(host);
}

function invalid(text: string, reason: string): TrunklineError {
  return new TrunklineError('ADDRESS_INVALID', `the address "${text}" is invalid: ${reason}`);
}

function parseTcp(text: string, rest: string, listen: boolean): Address {
  const match = /^(\[[^\]]*\]|[^:[\]]*):([^:[\]]*)$/.exec(rest);
  if (match === null) {
    throw invalid(text, rest.includes(':') ? 'an IPv6 host stands in brackets: [::1]' : 'it has no port');
  }
  const host = parseHost(text, match[1]!, listen);
  const portText = match[2]!;
  if (portText === '*' || portText === '0') {
    if (!listen) throw invalid(text, `port ${portText} is for listening only`);
    return { scheme: 'tcp', host, port: 0 };
  }
  if (!/^[1-9][0-9]*$/.test(portText) || portText.length > 5 || Number(portText) > 65535) {
    throw invalid(text, `the port "${portText}" is not a number from 1 to 65535`);
  }
  return { scheme: 'tcp', host, port: Number(portText) };
}

function parseHost(text: string, host: string, listen: boolean): string {
  if (host === '') throw invalid(text, 'it has no host');
  if (host === '*') {
    if (listen) return host;
    throw invalid(text, 'host * is for listening only');
  }
  if (host.startsWith('[')) {
    const inner = host.slice(1, -1);
    if (!validIPv6(inner)) throw invalid(text, `"${inner}" is not an IPv6 address`);
    return inner;
  }
  if (/^[0-9.]+$/.test(host)) {
    if (!validIPv4(host)) throw invalid(text, `"${host}" is not an IPv4 address`);
    return host;
  }
  const labels = host.split('.');
  if (host.length > 253 || !labels.every((label) => /^(?!-)[A-Za-z0-9_-]{1,63}(?<!-)$/.test(label))) {
    throw invalid(text, `"${host}" is not a host name`);
  }
  return host;
}

function validIPv4(host: string): boolean {
  const parts = host.split('.');
  return parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255);
}

function validIPv6(text: string): boolean {
  const zone = text.indexOf('%');
  if (zone >= 0 && !/^[A-Za-z0-9._-]{1,32}$/.test(text.slice(zone + 1))) return false;
  const halves = (zone < 0 ? text : text.slice(0, zone)).split('::');
  if (halves.length > 2) return false;
  let count = 0;
  for (const [index, half] of halves.entries()) {
    if (half === '') continue;
    const groups = half.split(':');
    const last = groups.at(-1)!;
    if (index === halves.length - 1 && last.includes('.')) {
      if (!validIPv4(last)) return false;
      groups.pop();
      count += 2;
    }
    if (!groups.every((group) => /^[0-9A-Fa-f]{1,4}$/.test(group))) return false;
    count += groups.length;
  }
  return halves.length === 2 ? count <= 7 : count === 8;
}

function parseIpc(text: string, path: string): Address {
  if (path === '') throw invalid(text, 'it has no path');
  if (path === '*') throw invalid(text, 'a wildcard path is not supported');
  if (path.startsWith('@')) throw invalid(text, 'abstract socket names are not supported: name a file');
  if (path.includes('\0')) throw invalid(text.replaceAll('\0', '\\0'), 'the path holds a NUL');
  if (path.endsWith('/')) throw invalid(text, 'the path names a folder, not a socket');
  const bytes = new TextEncoder().encode(path).length;
  if (bytes > maxIpcPathBytes)
    throw invalid(text, `the path has ${bytes} bytes, at most ${maxIpcPathBytes} are possible`);
  return { scheme: 'ipc', path };
}
