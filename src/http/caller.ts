import { isIP } from 'node:net';

import { plainAddress, type TrustedProxies } from '../base/network.ts';
import type { Fields } from './fields.ts';

/** The caller: the peer itself, or the address that trusted proxies name. */
export interface Caller {
  readonly address: string;
  readonly encrypted: boolean;
}

/**
 * Resolves the caller behind `peer`, a trusted proxy. `X-Forwarded-For` is read from its end: each proxy adds the
 * address that it saw, so the last one that is not a trusted proxy's own is the caller. What stands before it was
 * written by the caller.
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
