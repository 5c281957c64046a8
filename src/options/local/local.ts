/**
 * Decides who is served without authentication: callers on this machine, or with `--share` on
 * private networks. A page of another site must not get through, wherever its host name points and
 * whatever proxy forwards its requests.
 */
import { BlockList, isIP, isIPv6 } from 'node:net';
import { hostname } from 'node:os';
import { CairnError } from '../../base/errors.ts';
import { isLoopback, plainAddress } from '../../base/network.ts';
import type { Origins } from '../../http/cross-site.ts';
import { toHostName } from '../../http/head.ts';
import type { Request } from '../../http/message.ts';

export interface Local {
  /** Origins of pages that may call: the allowed ones, and with `share` also nearby ones. */
  readonly origins: Origins;
  /** @throws CairnError `misdirected_request`, `cross_site` */
  check(request: Pick<Request, 'method' | 'fields' | 'address'>): void;
}

export interface LocalOptions {
  readonly allowed: Origins;
  readonly share: boolean;
  readonly hosts: readonly string[];
}

export function createLocal({ allowed, share, hosts }: LocalOptions): Local {
  const names = new Set(['host.docker.internal', hostname(), ...hosts].map(inLowerCase));
  const hasAddress = share ? isNear : isLoopback;
  const hasName = (host: string): boolean =>
    isLoopback(host) || (share && (isIP(host) > 0 || names.has(host) || ownName.test(host)));
  /** A page at a public address is a website like any other. */
  const isNearby = (origin: string): boolean => {
    const host = toHostName(/^https?:\/\/([^/]+)$/i.exec(origin)?.[1] ?? '');
    return isIP(host) > 0 ? hasAddress(host) : hasName(host);
  };
  const isShared = (origin: string): boolean =>
    share && (applications.has(origin) || isNearby(origin));
  const origins: Origins = { has: (origin) => allowed.has(origin) || isShared(origin) };

  /** The rule for each proxy header. Any other forwarding header is refused. */
  const forwarding: Readonly<Record<string, (entry: string) => boolean>> = {
    'x-forwarded-for': (entry) => hasAddress(addressIn(entry)),
    'x-real-ip': (entry) => hasAddress(addressIn(entry)),
    'x-forwarded-host': (entry) => hasName(toHostName(entry)),
    'x-forwarded-proto': (entry) => /^(?:https?|wss?)$/i.test(entry),
    'x-forwarded-port': (entry) => /^\d+$/.test(entry),
    via: () => true,
  };

  return {
    origins,
    check({ method, fields, address }) {
      const sent = new Set<string>();
      fields.raw.forEach((value, at) => {
        const name = fields.raw[at - 1]?.toLowerCase() ?? '';
        if (at % 2 === 0 || !forwardingField.test(name)) return;
        sent.add(name);
        const isGood = forwarding[name];
        const isLocal = isGood && value.split(',').every((entry) => isGood(entry.trim()));
        if (!isLocal) throw forwarded;
      });
      const names = ['x-forwarded-for', 'x-forwarded-host'];
      if (sent.size > 0 && !names.every((name) => sent.has(name))) throw forwarded;
      if (!hasAddress(address) || !hasName(toHostName(fields.get('host') ?? '')))
        throw share ? notNear : notLocal;
      // A proxy that rewrites Host makes a foreign page look like one of this site.
      const origin = fields.get('origin');
      // Reads count too: a proxy may let every page read the response. OPTIONS reveals nothing.
      if (method === 'OPTIONS' || origin === undefined) return;
      if (!origins.has(origin) && !isNearby(origin)) throw foreignPage;
    },
  };
}

const inLowerCase = (name: string): string => name.toLowerCase();

/** Names that no website can have: one label, `*.localhost` and `*.local`. */
const ownName = /^[\w-]+(?:(?:\.[\w-]+)*\.local(?:host)?)?$/;

/** Pages of mobile applications (Capacitor, Ionic). */
const applications = new Set(['capacitor://localhost', 'ionic://localhost']);

const forwardingField =
  /^(?:forwarded(?:-for)?|via|x-(?:forwarded|original)(?:-.*)?|x-real-ip|[a-z-]*(?:client|connecting)-ip)$/;

/** Removes a port and brackets. */
const addressIn = (entry: string): string =>
  plainAddress(entry.replace(/^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/, '$1$2'));

const near = new BlockList();
// Private, link-local, shared (RFC 6598) and unique local addresses.
for (const network of [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '100.64.0.0/10',
]) {
  const [address = '', bits] = network.split('/');
  near.addSubnet(address, Number(bits), 'ipv4');
}
near.addSubnet('fe80::', 10, 'ipv6');
near.addSubnet('fc00::', 7, 'ipv6');

/** True for networks that are not routed publicly. */
function isNear(address: string): boolean {
  const [plain = ''] = address.split('%');
  return (
    isLoopback(plain) || (isIP(plain) > 0 && near.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4'))
  );
}

const misdirected = (reason: string): CairnError =>
  new CairnError('misdirected_request', `Cannot answer without authentication: ${reason}`);
const notLocal = misdirected(
  'only callers on this machine are served, as localhost; start with --share for other devices',
);
const notNear = misdirected(
  'only private networks are served, by an address or a local name; --share-host adds a name',
);
const forwarded = misdirected(
  'a proxy forwarded the request; let it set both X-Forwarded-For and X-Forwarded-Host, with ' +
    'addresses and names of this machine only, or no forwarding field at all',
);
const foreignPage = new CairnError(
  'cross_site',
  'Cannot accept the request: a page of another site sent it; --cors-origin allows its origin',
);
