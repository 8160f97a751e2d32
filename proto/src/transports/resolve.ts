import { lookup } from 'node:dns/promises';
import { isHostName } from './address.js';

/** A host as a number; a name's addresses take turns with the attempts. Undefined where the name is unknown. */
export async function numericHost(host: string, attempts = 0): Promise<string | undefined> {
  if (!isHostName(host)) return host;
  const hosts = await lookUp(host);
  return hosts[attempts % hosts.length];
}

/** The numeric addresses of a host name, IPv4 first, the same way for listening and for dialling; none if unknown. */
async function lookUp(host: string): Promise<string[]> {
  try {
    const found = await lookup(host, { all: true, verbatim: true });
    return [...found].sort((a, b) => a.family - b.family).map((entry) => entry.address);
  } catch {
    return [];
  }
}
