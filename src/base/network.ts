import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

/** The network that one caller may have all of: the address itself, of IPv6 the first 64 bits (RFC 4291 §2.5.4). */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  // Looked at first, since the check of Node.js takes 3 ms when it is first made.
  if (!plain.includes(':') || !isIPv6(plain)) return address;
  // A URL has it in one spelling (RFC 5952), without IPv4 at its end.
  const halves = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const [before = [], after = []] = halves.map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = new Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].slice(0, 4).join(':');
}

/** The key under which a caller's share of a pool is counted: the user once it is known, else the network. */
export function callerKey(address: string, userId: number | undefined): string {
  return userId === undefined ? networkOf(address) : `user ${userId}`;
}

/** Whether an address belongs to a proxy of one's own: its `X-Forwarded-*` fields are believed. */
export type TrustedProxies = (address: string) => boolean;

/** Reads addresses and CIDR networks (RFC 4632 §3.1) that `isNetwork` lets pass, such as `['::1', '10.0.0.0/8']`. */
export function parseTrustedProxies(entries: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    list.addSubnet(address, Number(prefix ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  return (address) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** Whether this is an address, or one and the length of a prefix behind it. */
export function isNetwork(entry: string): boolean {
  const [, address = '', prefix = '0'] = /^([0-9A-Fa-f:.]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  return isIP(address) !== 0 && Number(prefix) <= (isIPv4(address) ? 32 : 128);
}

/** An address in one spelling: IPv4-mapped IPv6 (RFC 4291 §2.5.5.2), which dual-stack sockets show, becomes IPv4. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

/** Whether this address or name can only mean this very machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
