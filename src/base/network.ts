import { isIP, isIPv4, isIPv6 } from 'node:net';

/**
 * Returns the network in which one caller may use every address: the address itself, or the first
 * 64 bits of an IPv6 address (RFC 4291 §2.5.4).
 */
export function toNetwork(address: string): string {
  const [plain = ''] = address.split('%');
  // Checked first, because the first call of isIPv6 takes 3 ms.
  if (!plain.includes(':') || !isIPv6(plain)) return address;
  // A URL normalises the spelling (RFC 5952) and removes an embedded IPv4 address.
  const halves = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const [before = [], after = []] = halves.map((half) =>
    half.split(':').filter((group) => group !== ''),
  );
  const zeros = new Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}

/**
 * Returns the key of a caller's share in a budget: the user if known, else the network of one site,
 * which is an IPv4 address or the first 48 bits of an IPv6 address.
 */
export function callerKey(address: string, userId: number | undefined): string {
  return userId === undefined ? toSite(toNetwork(address)) : `user ${userId}`;
}

/**
 * Returns the largest network that one site usually has (RFC 6177 §2): the first 48 bits of an IPv6
 * network. An IPv4 address or a user stays the same.
 */
export function toSite(caller: string): string {
  return caller.includes(':') ? caller.split(':', 3).join(':') : caller;
}

/** Such as `10.0.0.0/8`, or a single address. */
export function isNetwork(entry: string): boolean {
  const [, address = '', prefix = '0'] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  return isIP(address) !== 0 && Number(prefix) <= (isIPv4(address) ? 32 : 128);
}

/**
 * Converts an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), as dual-stack sockets report it, to
 * IPv4.
 */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

/** True if an address or name always means this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
