import assert from 'node:assert/strict';
import { createHmac, createSecretKey } from 'node:crypto';
import { test } from 'node:test';
import { signJws, verifyJws } from '../../src/auth/jws.ts';
import { base64url } from './helpers.ts';

const keyOf = (secret: Buffer, kid = 'a') => ({ kid, secret: createSecretKey(secret) });

test('RFC 7515 appendix A.1: the token is verified', () => {
  const secret = Buffer.from(
    'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
    'base64url',
  );
  const token =
    'eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9' +
    '.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ' +
    '.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  const payload = '{"iss":"joe",\r\n "exp":1300819380,\r\n "http://example.com/is_root":true}';
  assert.equal(verifyJws(token, [keyOf(secret)])?.toString(), payload);
  assert.equal(verifyJws(token, [keyOf(Buffer.alloc(64))]), undefined);
});

/** RFC 4231 §4: key, data and HMAC-SHA-256, of the cases whose key and hash are whole. */
const rfc4231 = [
  ['case 1', '0b'.repeat(20), '4869205468657265', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
  ['case 2', '4a656665', '7768617420646f2079612077616e7420666f72206e6f7468696e673f',
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'],
  ['case 3', 'aa'.repeat(20), 'dd'.repeat(50), '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe'],
  ['case 4', '0102030405060708090a0b0c0d0e0f10111213141516171819', 'cd'.repeat(50),
    '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b'],
  ['case 6', 'aa'.repeat(131),
    Buffer.from('Test Using Larger Than Block-Size Key - Hash Key First').toString('hex'),
    '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54'],
] as const;

for (const [name, key, data, expected] of rfc4231) {
  test(`RFC 4231 ${name}: Node.js computes HMAC-SHA-256`, () => {
    const actual = createHmac('sha256', createSecretKey(Buffer.from(key, 'hex'))).update(Buffer.from(data, 'hex'));
    assert.equal(actual.digest('hex'), expected);
  });
}

test('what is signed is verified, by its key alone', () => {
  const [first, second] = [keyOf(Buffer.alloc(32, 1), 'first'), keyOf(Buffer.alloc(32, 2), 'second')];
  const token = signJws('{"é":1}', second);
  assert.equal(verifyJws(token, [first, second])?.toString(), '{"é":1}');
  assert.equal(verifyJws(token, [first]), undefined);
  assert.equal(verifyJws(token, []), undefined);
});

test('a token without kid is tried against all keys', () => {
  const secret = Buffer.alloc(32, 2);
  const signed = `${base64url('{"alg":"HS256"}')}.${base64url('{}')}`;
  const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
  assert.equal(verifyJws(token, [keyOf(Buffer.alloc(32, 1)), keyOf(secret)])?.toString(), '{}');
});
