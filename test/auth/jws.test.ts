import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { hmacSha256, jwsHeader, signJws, verifyJws } from '../../src/auth/jws.ts';
import { base64url } from '../support/basics.ts';

const keyOf = (secret: Buffer, kid = 'a') => ({ kid, header: jwsHeader(kid), mac: hmacSha256(secret) });

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
  assert.equal(verifyJws(token, [keyOf(secret)])?.payload.toString(), payload);
  assert.equal(verifyJws(token, [keyOf(Buffer.alloc(64))]), undefined);
});

/** RFC 4231 §4: key, data and HMAC-SHA-256 of the cases with ASCII data and a complete hash. */
const rfc4231 = [
  ['case 1', '0b'.repeat(20), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
  ['case 2', '4a656665', 'what do ya want for nothing?',
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'],
  ['case 6', 'aa'.repeat(131), 'Test Using Larger Than Block-Size Key - Hash Key First',
    '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54'],
  ['case 7', 'aa'.repeat(131),
    'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed ' +
      'before being used by the HMAC algorithm.', '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2'],
] as const;

for (const [name, key, data, expected] of rfc4231) {
  test(`RFC 4231 ${name}: HMAC-SHA-256`, () => {
    const mac = hmacSha256(Buffer.from(key, 'hex'))(data);
    assert.equal(Buffer.from(mac, 'base64url').toString('hex'), expected);
  });
}

test('a text that is not ASCII is signed as UTF-8', () => {
  const key = Buffer.alloc(32, 1);
  for (const text of ['é', '\u{1f984}', '€'.repeat(4096), '']) {
    assert.equal(hmacSha256(key)(text), createHmac('sha256', key).update(Buffer.from(text)).digest('base64url'));
  }
});

test('a token is verified only by the key that signed it', () => {
  const [first, second] = [keyOf(Buffer.alloc(32, 1), 'first'), keyOf(Buffer.alloc(32, 2), 'second')];
  const token = signJws('{"é":1}', second);
  assert.equal(verifyJws(token, [first, second])?.payload.toString(), '{"é":1}');
  assert.equal(verifyJws(token, [first]), undefined);
  assert.equal(verifyJws(token, []), undefined);
});

test('a token without kid is verified by any key', () => {
  const secret = Buffer.alloc(32, 2);
  const signed = `${base64url('{"alg":"HS256"}')}.${base64url('{}')}`;
  const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
  assert.equal(verifyJws(token, [keyOf(Buffer.alloc(32, 1)), keyOf(secret)])?.payload.toString(), '{}');
});
