import type { Address } from '@trunkline/proto/address';

const everyInterface = new Set(['*', '0.0.0.0', '::']);

/** Whether two listeners cannot stand side by side. A name other than localhost is not looked up. */
export function clash(a: Address, b: Address): boolean {
  if (a.scheme === 'ipc' || b.scheme === 'ipc') return a.scheme === b.scheme && pathOf(a) === pathOf(b);
  if (a.port === 0 || a.port !== b.port) return false;
  return everyInterface.has(a.host) || everyInterface.has(b.host) || sameHost(a.host, b.host);
}

/** Whether dialling `to` reaches the listener at `at`. Which other addresses this machine has is not looked up. */
export function reaches(to: Address, at: Address): boolean {
  if (to.scheme === 'ipc' || at.scheme === 'ipc') return to.scheme === at.scheme && pathOf(to) === pathOf(at);
  if (at.port === 0 || at.port !== to.port) return false;
  return everyInterface.has(at.host) ? isLocal(to.host) : sameHost(to.host, at.host);
}

const pathOf = (address: Address): string => (address.scheme === 'ipc' ? address.path : '');

function sameHost(a: string, b: string): boolean {
  const [one, other] = [a.toLowerCase(), b.toLowerCase()];
  return one === other || ((one === 'localhost' || other === 'localhost') && isLocal(one) && isLocal(other));
}

/** Hosts behind which there is always this machine; dialling "every interface" ends there too. */
function isLocal(host: string): boolean {
  const lower = host.toLowerCase();
  return lower === 'localhost' || lower === '::1' || /^127\.[0-9.]+$/.test(lower) || everyInterface.has(lower);
}
