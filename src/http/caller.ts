import { isIP } from 'node:net';

import { plainAddress, type TrustedProxies } from '../base/network.ts';
import type { Fields } from './fields.ts';

/** A caller's address, and whether its connection is encrypted. */
export interface Caller {
  readonly address: string;
  readonly encrypted: boolean;
}

/**
 * Returns the caller behind `peer`, a trusted proxy. Each proxy appends the address that
 * it saw to `X-Forwarded-For`, so the field is read from its end: the last address that
 * is not a trusted proxy is the caller's. What precedes it may have been forged by the
 * caller.
 */
export function resolveCaller(peer: Caller, fields: Fields, proxies: TrustedProxies): Caller {
  let address = peer.address;
  for (const hop of (fields.get('x-forwarded-for') ?? '').split(',').reverse()) {
    // Some proxies append the port too: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
    const named = plainAddress(hop.trim().replace(/^(?:\[(.+)\]|([\d.]+))(?::\d*)?$/, '$1$2'));
    if (isIP(named) === 0) break;
    address = named;
    if (!proxies(address)) break;
  }
  const scheme = fields.get('x-forwarded-proto')?.split(',').at(-1)?.trim().toLowerCase();
  return { address, encrypted: scheme === undefined ? peer.encrypted : scheme === 'https' };
}
