import { BlockList, isIP, isIPv4 } from 'node:net';

import { plainAddress } from '../../base/network.ts';
import type { Proxies } from '../../http/server-options.ts';

/**
 * Trusts proxies in these networks: addresses and CIDR networks (RFC 4632 §3.1) that `isNetwork`
 * accepts, such as `['::1', '10.0.0.0/8']`.
 *
 * Each proxy appends the address that it saw to `X-Forwarded-For`, so the field is read from its
 * end: the last address that is not a trusted proxy is the caller's. The caller may have forged the
 * addresses before it.
 */
export function createProxies(networks: readonly string[]): Proxies {
  const list = new BlockList();
  for (const entry of networks) {
    const [address = '', prefix] = entry.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    list.addSubnet(address, Number(prefix ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  const has = (address: string): boolean =>
    list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return {
    has,
    callerBehind(peer, fields) {
      let { address } = peer;
      for (const hop of (fields.get('x-forwarded-for') ?? '').split(',').reverse()) {
        // Some proxies append the port too: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
        const named = plainAddress(hop.trim().replace(/^(?:\[(.+)\]|([\d.]+))(?::\d*)?$/, '$1$2'));
        if (isIP(named) === 0) break;
        address = named;
        if (!has(address)) break;
      }
      const scheme = fields.get('x-forwarded-proto')?.split(',').at(-1)?.trim().toLowerCase();
      return { address, encrypted: scheme === undefined ? peer.encrypted : scheme === 'https' };
    },
  };
}
