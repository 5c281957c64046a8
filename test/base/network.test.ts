import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toNetwork, toSite } from '../../src/base/network.ts';

test('RFC 5952 and others: the network of an address', () => {
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

test('RFC 6177: the site of an address', () => {
  for (const [address, site] of [
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0'],
    ['2001:db8:1:ff00::1', '2001:db8:1'],
    ['unknown', 'unknown'],
  ] as const) assert.equal(toSite(toNetwork(address)), site, address);
});
