import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { keyRingOfSecret, newKeyRing, parseKeyRing, serialiseKeyRing } from '../../src/auth/keys.ts';
import { rotateKeyRing } from '../../src/cli/keys.ts';
import { createRandom } from '../support/basics.ts';

const created = Date.UTC(2026, 0, 2);
const hour = 3_600_000;
const ringOf = (seed: string) => newKeyRing(createRandom(seed), created);

test('a configured secret is used as UTF-8, and has at least 32 bytes', () => {
  const secret = 'ä'.repeat(16);
  const [key] = keyRingOfSecret(secret, created).keys;
  assert.equal(key.secret.export().toString('utf8'), secret);
  for (const short of ['', 'x'.repeat(31), `${'ä'.repeat(15)}x`]) {
    assert.throws(() => keyRingOfSecret(short, created), {
      name: 'KeyRingError',
      message: 'Cannot use the secret: it must have from 32 to 1024 bytes',
    });
  }
});

test('the key id is derived from the secret, and the second key differs from it', () => {
  const [key] = ringOf('a').keys;
  assert.equal(ringOf('a').keys[0].kid, key.kid);
  assert.notEqual(ringOf('b').keys[0].kid, key.kid);
  assert.match(key.kid, /^[\w-]{11}$/);
  assert.notEqual(key.successorMac('a'), key.mac('a'));
});

test('a ring is unchanged after writing and parsing its file', () => {
  const second = rotateKeyRing(ringOf('a'), createRandom('b'), created + hour);
  const ring = rotateKeyRing(second, createRandom('c'), created + 2 * hour);
  const read = parseKeyRing(Buffer.from(serialiseKeyRing(ring)));
  const plain = ({ kid, createdAt, retiredAt, secret }: (typeof ring.keys)[number]) =>
    ({ kid, createdAt, retiredAt, secret: secret.export().toString('hex') });
  assert.deepEqual(read.keys.map(plain), ring.keys.map(plain));
  assert.deepEqual(read.keys.map((key) => key.retiredAt), [undefined, created + 2 * hour, created + hour]);
});

test('printing a ring does not reveal a secret', () => {
  const ring = ringOf('a');
  const shown = inspect(ring, { depth: 10, showHidden: true }) + JSON.stringify(ring);
  const secret = ring.keys[0].secret.export();
  for (const encoding of ['hex', 'base64', 'base64url', 'latin1'] as const) {
    assert.ok(!shown.includes(secret.toString(encoding)), encoding);
  }
});

const secret = Buffer.alloc(32, 7).toString('base64url');
const other = Buffer.alloc(32, 8).toString('base64url');
const createdAt = new Date(created).toISOString();
const file = (...keys: unknown[]) => JSON.stringify({ format: 'cairn-keys-1', keys });
const damaged: Readonly<Record<string, string>> = {
  'nothing': '',
  'cut': file({ secret, createdAt }).slice(0, -1),
  'another format': JSON.stringify({ format: 'cairn-keys-2', keys: [{ secret, createdAt }] }),
  'an array': JSON.stringify([{ secret, createdAt }]),
  'no keys': file(),
  'keys not in an array': JSON.stringify({ format: 'cairn-keys-1', keys: { secret, createdAt } }),
  'a key that is a string': file(secret),
  'a short secret': file({ secret: secret.slice(0, 40), createdAt }),
  'a long secret': file({ secret: Buffer.alloc(1025).toString('base64url'), createdAt }),
  'a secret in base64': file({ secret: `${secret}=`, createdAt }),
  'a secret that is a number': file({ secret: 7, createdAt }),
  'no time': file({ secret }),
  'a time that is none': file({ secret, createdAt: 'yesterday' }),
  'a time of retirement that is none': file({ secret, createdAt }, { secret: other, createdAt, retiredAt: null }),
  'the first one retired': file({ secret, createdAt, retiredAt: createdAt }),
  'two that sign': file({ secret, createdAt }, { secret: other, createdAt }),
  'the same twice': file({ secret, createdAt }, { secret, createdAt, retiredAt: createdAt }),
  'a member too many': file({ secret, createdAt, kid: 'x' }),
  'a member twice': file({ secret, createdAt }).replace('"secret"', '"secret":"","secret"'),
};
for (const [name, text] of Object.entries(damaged)) {
  test(`a ring file with ${name} is refused, without quoting it`, () => {
    assert.throws(() => parseKeyRing(Buffer.from(text)), (error) => {
      assert.ok(error instanceof Error && error.name === 'KeyRingError');
      assert.match(error.message, /^Cannot (read the key ring|use the secret): /);
      assert.ok(!inspect(error).includes(secret.slice(0, 8)));
      return true;
    });
  });
}
