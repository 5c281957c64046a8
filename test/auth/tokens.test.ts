import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { keyRingOfSecret, newKeyRing, type KeyRing } from '../../src/auth/keys.ts';
import { nextSignOut, Tokens } from '../../src/auth/tokens.ts';
import { CairnError } from '../../src/base/errors.ts';
import { rotateKeyRing } from '../../src/cli/keys.ts';
import { base64url, TestClock, createRandom } from '../support/basics.ts';

const secret = 'a secret of thirty-two bytes, 1!';
const now = Math.floor(new TestClock().time / 1000);
const good = { userId: 7, role: 'member', iat: now, exp: now + 900 };
const goodHeader = { alg: 'HS256', typ: 'JWT' };

function setUp(ring = keyRingOfSecret(secret, 0)) {
  const clock = new TestClock();
  return { clock, ring, tokens: new Tokens({ ring, clock, random: createRandom('tokens') }) };
}

/** Signs any header and payload with the right key: text as it is, other values as JSON. */
function sign(header: unknown, payload: unknown, hash = 'sha256', key = secret): string {
  const part = (value: unknown) =>
    base64url(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value));
  const signed = `${part(header)}.${part(payload)}`;
  return `${signed}.${createHmac(hash, key).update(signed).digest('base64url')}`;
}

const goodToken = sign(goodHeader, good);
const [headerPart = '', payloadPart = '', signaturePart = ''] = goodToken.split('.');
const resign = (signed: string) => `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
const withHeader = (members: object) => sign({ ...goodHeader, ...members }, good);
const withClaims = (members: object) => sign(goodHeader, { ...good, ...members });
const without = (name: string) => withClaims({ [name]: undefined });
const withText = (from: string | RegExp, to: string) => sign(goodHeader, JSON.stringify(good).replace(from, to));
/** Returns valid claims whose length in bytes is `rest` modulo 3. */
const paddedClaims = (rest: number) => JSON.stringify(good).padEnd(300 + rest);
const withSignature = (signature: string) => `${headerPart}.${payloadPart}.${signature}`;
const signatureBytes = Buffer.from(signaturePart, 'base64url');
const kid = keyRingOfSecret(secret, 0).keys[0].kid;

const accepted: Readonly<Record<string, string>> = {
  'as the description shows it': goodToken,
  'without typ': sign({ alg: 'HS256' }, good),
  'with kid and jti': sign({ ...goodHeader, kid }, { ...good, jti: 'x' }),
  'with an unknown claim': withClaims({ iss: 'somewhere' }),
  'an administrator': withClaims({ role: 'admin' }),
  'issued 60 s ahead of this clock': withClaims({ iat: now + 60, exp: now + 900 }),
  'not before 60 s from now': withClaims({ nbf: now + 60 }),
  'with one second to live': withClaims({ iat: now - 899, exp: now + 1 }),
  'times with fractions': withClaims({ iat: now - 0.5, exp: now + 0.5 }),
  'a life of a day': withClaims({ exp: now + 86400 }),
  'white space in the JSON': sign('{ "alg" : "HS256" }', `\n${JSON.stringify(good)}\t`),
};

const refused: Readonly<Record<string, string>> = {
  // Algorithm
  ...Object.fromEntries(
    ['none', 'None', 'NONE', 'nOnE', 'HS384', 'HS512', 'RS256', 'PS256', 'ES256', 'EdDSA', 'hs256', ' HS256', 'HS256 ',
      'HS256\0', '', null, ['HS256'], 256, {}, true].map((alg) => [`alg ${JSON.stringify(alg)}`, withHeader({ alg })]),
  ),
  'alg none without a signature': `${base64url('{"alg":"none"}')}.${payloadPart}.`,
  'alg absent': sign({ typ: 'JWT' }, good),
  'alg only in the payload': sign({ typ: 'JWT' }, { ...good, alg: 'HS256' }),
  'HS384, truly': sign({ alg: 'HS384' }, good, 'sha384'),
  'HS512, truly': sign({ alg: 'HS512' }, good, 'sha512'),
  'HS512 under the name HS256': sign(goodHeader, good, 'sha512'),
  // Header
  crit: withHeader({ crit: ['exp'] }),
  'crit, empty': withHeader({ crit: [] }),
  'b64 false': withHeader({ b64: false, crit: ['b64'] }),
  'b64 false without crit': withHeader({ b64: false }),
  jku: withHeader({ jku: 'https://evil.example/keys' }),
  x5u: withHeader({ x5u: 'https://evil.example/cert' }),
  jwk: withHeader({ jwk: { kty: 'oct', k: base64url(secret) } }),
  x5c: withHeader({ x5c: ['MII'] }),
  zip: withHeader({ zip: 'DEF' }),
  enc: withHeader({ enc: 'A256GCM' }),
  'kid unknown': withHeader({ kid: 'unknown' }),
  'kid ../': withHeader({ kid: '../../dev/null' }),
  'kid with NUL': withHeader({ kid: `${kid}\0` }),
  'kid of 10 KB': withHeader({ kid: 'k'.repeat(10_240) }),
  'kid of 2 KB': withHeader({ kid: 'k'.repeat(2048) }),
  'kid __proto__': withHeader({ kid: '__proto__' }),
  'kid constructor': withHeader({ kid: 'constructor' }),
  'kid empty': withHeader({ kid: '' }),
  'kid null': withHeader({ kid: null }),
  'kid array': withHeader({ kid: [kid] }),
  'kid number': withHeader({ kid: 0 }),
  'typ wrong': withHeader({ typ: 'at+jwt' }),
  'typ null': withHeader({ typ: null }),
  'header array': sign([goodHeader], good),
  'header string': sign('"HS256"', good),
  'header null': sign(null, good),
  'header number': sign(1, good),
  'header not JSON': sign('{alg:HS256}', good),
  'header cut': sign('{"alg":"HS256"', good),
  'header invalid UTF-8': sign(Buffer.from('{"alg":"HS256","kid":"\xff"}', 'latin1'), good),
  'header with BOM': sign('\ufeff{"alg":"HS256"}', good),
  'header with alg twice': sign('{"alg":"HS256","alg":"HS256"}', good),
  'header with alg twice, once escaped': sign('{"alg":"none","\\u0061lg":"HS256"}', good),
  'header with __proto__': sign('{"alg":"HS256","__proto__":{}}', good),
  'header with alg in __proto__': sign('{"__proto__":{"alg":"HS256"}}', good),
  // Form
  nothing: '',
  '1 part': 'abc',
  '2 parts': `${headerPart}.${payloadPart}`,
  '4 parts': `${goodToken}.${signaturePart}`,
  '5 parts': `${headerPart}.a.b.c.${signaturePart}`,
  'only dots': '..',
  'an empty header': resign(`.${payloadPart}`),
  'an empty payload': resign(`${headerPart}.`),
  'a leading dot': `.${goodToken}`,
  'a trailing dot': `${goodToken}.`,
  'JSON serialization': JSON.stringify({ payload: payloadPart, protected: headerPart, signature: signaturePart }),
  'padding on the signature': `${goodToken}=`,
  'padding on the payload': resign(`${headerPart}.${base64url(paddedClaims(1))}==`),
  'white space before': ` ${goodToken}`,
  'white space after': `${goodToken} `,
  'a line end after': `${goodToken}\n`,
  'white space inside': resign(`${headerPart}.${payloadPart} `),
  'base64 instead of base64url': resign(
    `${headerPart}.${Buffer.from(JSON.stringify({ ...good, jti: '???>>>~~~' })).toString('base64').replace(/=/g, '')}`,
  ),
  'unused bits in the header': resign(`${nextLetter(base64url('{"alg":"HS256"} '))}.${payloadPart}`),
  'unused bits in the payload': resign(`${headerPart}.${nextLetter(base64url(paddedClaims(2)))}`),
  'unused bits in the signature': withSignature(nextLetter(signaturePart)),
  'a header of length 1 mod 4': resign(`${base64url('{"alg":"HS256"}')}A.${payloadPart}`),
  'a payload of length 1 mod 4': resign(`${headerPart}.${base64url(paddedClaims(0))}A`),
  'more than 4 KiB': withClaims({ note: 'n'.repeat(4096) }),
  'letters beyond ASCII that end in the right byte': withSignature(
    signaturePart.slice(0, -1) + String.fromCharCode(signaturePart.charCodeAt(42) + 256),
  ),
  // Signature
  'no signature': withSignature(''),
  'a signature of 16 bytes': withSignature(base64url(signatureBytes.subarray(0, 16))),
  'a signature of 33 bytes': withSignature(base64url(Buffer.concat([signatureBytes, Buffer.alloc(1)]))),
  'a signature of zeros': withSignature(base64url(Buffer.alloc(32))),
  'an empty key': sign(goodHeader, good, 'sha256', ''),
  'a key of zeros': sign(goodHeader, good, 'sha256', '\0'.repeat(32)),
  'another key': sign(goodHeader, good, 'sha256', 'another secret of at least 32 bytes'),
  'the payload of another token': withClaims({ role: 'admin' }).replace(/[^.]*$/, signaturePart),
  'the same token under another kid':
    `${base64url(JSON.stringify({ ...goodHeader, kid }))}.${payloadPart}.${signaturePart}`,
  // Claims
  ...Object.fromEntries(['userId', 'role', 'iat', 'exp'].map((name) => [`${name} absent`, without(name)])),
  'exp string': withClaims({ exp: String(good.exp) }),
  'exp negative': withClaims({ exp: -1 }),
  'exp null (a NaN that was written)': withClaims({ exp: null }),
  'exp NaN': withText(/"exp":\d+/, '"exp":NaN'),
  'exp 1e400': withText(/"exp":\d+/, '"exp":1e400'),
  'exp now': withClaims({ iat: now - 900, exp: now }),
  'exp past': withClaims({ iat: now - 901, exp: now - 1 }),
  'exp twice': withText('{', `{"exp":${now + 900},`),
  'nbf 61 s ahead': withClaims({ nbf: now + 61 }),
  'nbf string': withClaims({ nbf: String(now) }),
  'nbf null': withClaims({ nbf: null }),
  'iat 61 s ahead': withClaims({ iat: now + 61 }),
  'iat after exp': withClaims({ iat: now + 30, exp: now + 20 }),
  'iat string': withClaims({ iat: String(now) }),
  'iat negative': withClaims({ iat: -1 }),
  'a lifetime above the maximum': withClaims({ exp: now + 86401 }),
  'userId string': withClaims({ userId: '7' }),
  'userId fraction': withClaims({ userId: 7.5 }),
  'userId 0': withClaims({ userId: 0 }),
  'userId negative': withClaims({ userId: -7 }),
  'userId above 2^53': withClaims({ userId: 2 ** 53 + 2 }),
  'userId that a double cannot hold': withText('7', '9007199254740993'),
  'userId array': withClaims({ userId: [7] }),
  'role that is a word of access': withClaims({ role: 'owner' }),
  'role that is too long': withClaims({ role: 'x'.repeat(41) }),
  'role with a capital': withClaims({ role: 'Admin' }),
  'role array': withClaims({ role: ['admin'] }),
  'role object': withClaims({ role: { admin: true } }),
  'role __proto__': withClaims({ role: '__proto__' }),
  'jti number': withClaims({ jti: 1 }),
  'aud of someone else': withClaims({ aud: 'another service' }),
  'claims in __proto__': sign(goodHeader, `{"__proto__":${JSON.stringify(good)}}`),
  'payload array': sign(goodHeader, [good]),
  'payload string': sign(goodHeader, JSON.stringify(JSON.stringify(good))),
  'payload null': sign(goodHeader, null),
  'payload not JSON': sign(goodHeader, 'userId=7'),
  'payload invalid UTF-8': sign(goodHeader, Buffer.from(`{"x":"\xff",${JSON.stringify(good).slice(1)}`, 'latin1')),
  'payload with BOM': sign(goodHeader, `\ufeff${JSON.stringify(good)}`),
  'payload of a role twice': withText('{', '{"role":"admin",'),
  'a refresh token in its place': base64url(Buffer.alloc(50, 7)),
};

const messages = new Set<string>();

/**
 * The key rings with which every token is tried: the signing key by itself, first of three, retired, and newly
 * configured.
 */
const configured = keyRingOfSecret(secret, 0);
const randomRing = newKeyRing(createRandom('other key'), 0);
const rings: Readonly<Record<string, () => KeyRing>> = {
  'with one key': () => configured,
  'with two retired keys beside it': () => ({
    keys: [configured.keys[0], ...[randomRing, newKeyRing(createRandom('third key'), 0)].map(({ keys: [key] }) => ({
      ...key, retiredAt: now * 1000,
    }))],
  }),
  'with the key rotated': () => rotateKeyRing(configured, createRandom('rotated'), now * 1000),
};

/** Changes the last letter in a way that a lenient decoder ignores. */
function nextLetter(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return text.slice(0, -1) + (alphabet[alphabet.indexOf(text.slice(-1)) + 1] ?? '');
}

for (const [ring, makeRing] of Object.entries(rings)) {
  for (const [name, token] of Object.entries(accepted)) {
    test(`accepted ${ring}: ${name}`, () => {
      const { role } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
      const { kind, userId, role: found } = setUp(makeRing()).tokens.verify(token);
      assert.deepEqual([kind, userId, found], ['bearer', 7, role]);
    });
    test(`refused ${ring}, a day and a minute later: ${name}`, () => {
      const { tokens, clock } = setUp(makeRing());
      tokens.verify(token);
      clock.advance(86_460);
      assert.throws(() => tokens.verify(token), { code: 'invalid_token' });
    });
  }
  for (const [name, token] of Object.entries(refused)) {
    test(`refused ${ring}: ${name}`, () => {
      const { tokens } = setUp(makeRing());
      // A busy server: other tokens are already in its cache.
      tokens.verify(goodToken);
      assert.throws(() => tokens.verify(token), (error) => {
        assert.ok(error instanceof CairnError);
        assert.equal(error.code, 'invalid_token');
        messages.add(error.message);
        return true;
      });
      assert.equal(messages.size, 1, 'one constant message');
    });
  }
}

test('the malformed tokens in the table have valid claims', () => {
  for (const rest of [0, 1, 2]) setUp().tokens.verify(sign(goodHeader, paddedClaims(rest)));
  setUp().tokens.verify(withClaims({ jti: '???>>>~~~' }));
});

test('refused: each bit of a good signature flipped', () => {
  const { tokens } = setUp(rotateKeyRing(configured, createRandom('rotated'), now * 1000));
  const signature = Buffer.from(signaturePart, 'base64url');
  for (let bit = 0; bit < 256; bit += 1) {
    const flipped = Buffer.from(signature);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.throws(() => tokens.verify(`${headerPart}.${payloadPart}.${base64url(flipped)}`), { code: 'invalid_token' });
  }
  tokens.verify(goodToken);
});

test('an issued token has the documented claims, a kid and a unique id', () => {
  const { tokens, ring } = setUp();
  const { token, expiresIn } = tokens.issue({ userId: 3, role: 'admin' });
  const [header, payload] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  assert.deepEqual(JSON.parse(header ?? ''), { alg: 'HS256', typ: 'JWT', kid: ring.keys[0].kid });
  const { jti, ...claims } = JSON.parse(payload ?? '');
  assert.deepEqual(claims, { userId: 3, role: 'admin', iat: now, exp: now + 900 });
  assert.match(jti, /^[\w-]{22}$/);
  assert.equal(expiresIn, 900);
  assert.notEqual(tokens.issue({ userId: 3, role: 'admin' }).token, token);
  assert.deepEqual(tokens.verify(token), { kind: 'bearer', userId: 3, role: 'admin', issuedAt: now });
});

test('a cached token is compared with the clock at each use', () => {
  const { tokens, clock } = setUp();
  const { token } = tokens.issue({ userId: 3, role: 'member' });
  tokens.verify(token);
  clock.advance(899.999);
  tokens.verify(token);
  clock.advance(0.001);
  assert.throws(() => tokens.verify(token), { code: 'invalid_token' });
  clock.advance(-1000);
  assert.throws(() => tokens.verify(token), { code: 'invalid_token' }, 'issued in the future');
});

test('a token that is not yet valid becomes valid', () => {
  const { tokens, clock } = setUp();
  const token = withClaims({ nbf: now + 100 });
  assert.throws(() => tokens.verify(token), { code: 'invalid_token' });
  clock.advance(40);
  tokens.verify(token);
});

test('a retired key verifies for 24 hours, and then not even cached tokens', () => {
  const random = createRandom('rotation');
  const clock = new TestClock();
  const first = newKeyRing(random, clock.now());
  const tokens = new Tokens({ ring: first, clock, random });
  const before = tokens.issue({ userId: 3, role: 'member' }).token;
  const second = rotateKeyRing(first, random, clock.now());
  tokens.setRing(second);
  tokens.verify(before);
  const holder = new Tokens({ ring: first, clock, random });
  clock.advance(24 * 60 * 60 - 1);
  const used = holder.issue({ userId: 1, role: 'admin' }).token;
  tokens.verify(used);
  assert.equal(rotateKeyRing(second, random, clock.now()).keys.length, 3);
  clock.advance(1);
  for (const token of [used, holder.issue({ userId: 1, role: 'admin' }).token]) {
    assert.throws(() => tokens.verify(token), { code: 'invalid_token' });
  }
  assert.equal(rotateKeyRing(second, random, clock.now()).keys.length, 2, 'the retired key is left out');
});

test('tokens signed by a server that learns late of a rotation stay valid', () => {
  const random = createRandom('late');
  const clock = new TestClock();
  const first = newKeyRing(random, clock.now());
  const tokens = new Tokens({ ring: first, clock, random });
  const rotated = rotateKeyRing(first, random, clock.now());
  clock.advance(1200);
  const { token } = tokens.issue({ userId: 3, role: 'member' });
  tokens.setRing(rotated);
  clock.advance(899);
  tokens.verify(token);
  clock.advance(1);
  assert.throws(() => tokens.verify(token), { code: 'invalid_token' });
});

test('a new ring clears the cache of verified tokens', () => {
  const { tokens } = setUp();
  tokens.verify(goodToken);
  tokens.setRing(keyRingOfSecret('another secret of at least 32 bytes', 0));
  assert.throws(() => tokens.verify(goodToken), { code: 'invalid_token' });
});

test('many tokens are verified, some of them repeatedly', () => {
  const { tokens } = setUp();
  const often = tokens.issue({ userId: 1, role: 'admin' }).token;
  for (let userId = 2; userId < 12_000; userId += 1) {
    assert.equal(tokens.verify(tokens.issue({ userId, role: 'member' }).token).userId, userId);
    assert.equal(tokens.verify(often).userId, 1);
  }
});

test('sessions end now, or after the second in which a later token was issued', () => {
  assert.equal(nextSignOut(10_500), 10_500);
  assert.equal(nextSignOut(10_500, 3000), 10_500);
  assert.equal(nextSignOut(10_500, 10_200), 11_000);
});
