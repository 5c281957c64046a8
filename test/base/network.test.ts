import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toNetwork, toSite } from '../../src/base/network.ts';

test('an IPv6 address belongs to its /64 network (RFC 5952)', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['2001:0DB8:0000:0000:1:2:3:4', '2001:db8:0:0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['1::', '1:0:0:0'],
    ['1:2:3:4:5:6:7::', '1:2:3:4'],
    ['1:2:3::', '1:2:3:0'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['unknown', 'unknown'],
    ['', ''],
  ] as const) assert.equal(toNetwork(address), network, address);
});

test('an IPv6 address belongs to a /48 site (RFC 6177)', () => {
  for (const [address, site] of [
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0'],
    ['2001:db8:1:ff00::1', '2001:db8:1'],
    ['unknown', 'unknown'],
  ] as const) assert.equal(toSite(toNetwork(address)), site, address);
});
