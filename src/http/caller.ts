import { BlockList, isIP, isIPv4 } from 'node:net';

import type { Fields } from './fields.ts';

/** Whose `X-Forwarded-*` fields are believed: the addresses and networks of one's own proxies. */
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

/** The host of a `Host` field without its port and brackets (RFC 3986 §3.2.2), in lower case. */
export function hostOf(authority: string): string {
  return authority.toLowerCase().replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
}

/** Who is calling: the peer itself, or whom trusted proxies name. */
export interface Caller {
  readonly address: string;
  readonly encrypted: boolean;
}

/**
 * Resolves the caller behind `peer`, a trusted proxy. `X-Forwarded-For` is read from its end: each proxy adds the
 * address that it saw, so the last one that is not a trusted proxy's own is the caller, and what stands before it is
 * hearsay.
 */
export function resolveCaller(peer: Caller, fields: Fields, proxies: TrustedProxies): Caller {
  let address = peer.address;
  for (const hop of (fields.get('x-forwarded-for') ?? '').split(',').reverse()) {
    // Some proxies write the port too: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
    const named = plainAddress(hop.trim().replace(/^(?:\[(.+)\]|([\d.]+))(?::\d*)?$/, '$1$2'));
    if (isIP(named) === 0) break;
    address = named;
    if (!proxies(address)) break;
  }
  const scheme = fields.get('x-forwarded-proto')?.split(',').at(-1)?.trim().toLowerCase();
  return { address, encrypted: scheme === undefined ? peer.encrypted : scheme === 'https' };
}
