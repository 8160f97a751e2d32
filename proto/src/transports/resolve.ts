import { lookup } from 'node:dns/promises';

/** The numeric addresses of a host name, IPv4 first, the same way for listening and for dialling; none if unknown. */
export async function lookUp(host: string): Promise<string[]> {
  try {
    const found = await lookup(host, { all: true, verbatim: true });
    return [...found].sort((a, b) => a.family - b.family).map((entry) => entry.address);
  } catch {
    return [];
  }
}
