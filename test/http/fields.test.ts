import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CairnError } from '../../src/base/errors.ts';
import { checkContentType } from '../../src/http/content-type.ts';
import { callerKey, isNetwork, plainAddress } from '../../src/base/network.ts';
import { isCrossSite, parseOrigins } from '../../src/http/cross-site.ts';
import { Fields, readCookies, serializeCookie } from '../../src/http/fields.ts';
import { parseQuery } from '../../src/http/query.ts';
import { createRequestIds } from '../../src/http/request-ids.ts';
import { createCors } from '../../src/options/cors/cors.ts';
import { createProxies } from '../../src/options/proxies/proxies.ts';

function fields(named: Record<string, string>): Fields {
  return new Fields(Object.entries(named).flat());
}

function throwsCode(code: string, work: () => unknown, message: string): void {
  assert.throws(work, (error) => error instanceof CairnError && error.code === code, message);
}

test('fields are found in any case, and repeated ones are combined', () => {
  const sent = new Fields(['Accept', 'a', 'X', '1', 'ACCEPT', 'b', '__proto__', 'p', 'constructor', 'c']);
  assert.equal(sent.get('accept'), 'a, b');
  assert.equal(sent.get('x'), '1');
  assert.equal(sent.get('__proto__'), 'p');
  assert.equal(sent.get('accepted'), undefined);
  assert.equal(sent.get('tostring'), undefined);
});

test('a repeated field that must not be repeated is found', () => {
  const names = ['Authorization', 'content-type', 'HOST', 'Content-Length', 'Origin', 'Transfer-Encoding'];
  for (const name of [...names, 'Sec-Fetch-Site', 'Idempotency-Key', 'Session-User']) {
    assert.equal(new Fields([name, 'a', 'X', 'b', name.toLowerCase(), 'a']).repeated, name);
    assert.equal(new Fields([name, 'a', 'X', 'b', 'X', 'c']).repeated, undefined);
  }
});

test('RFC 9113 §8.2.3: several lines of cookies are one', () => {
  assert.deepEqual(readCookies(new Fields(['Cookie', 'sid=a', 'cookie', 'b=c']), 'b'), ['c']);
});

test('queries keep repeated parameters and are decoded strictly', () => {
  const rows: [string, [string, string[]][]][] = [
    ['', []],
    ['&&', []],
    ['a=1', [['a', ['1']]]],
    ['a', [['a', ['']]]],
    ['=1', [['', ['1']]]],
    ['a=1&b=2&a=3', [['a', ['1', '3']], ['b', ['2']]]],
    ['a=1&%61=2', [['a', ['1', '2']]]],
    ['price:gte=10&sort=-price,name', [['price:gte', ['10']], ['sort', ['-price,name']]]],
    ['a=b%2Cc,d,', [['a', ['b,c,d,']]]],
    ['a=b=c', [['a', ['b=c']]]],
    ['a=x+y%2Bz%20', [['a', ['x y+z ']]]],
    ['n=%C3%A4%00', [['n', ['ä\0']]]],
    ['__proto__=1', [['__proto__', ['1']]]],
  ];
  for (const [query, expected] of rows) assert.deepEqual([...parseQuery(query)], expected, query);
  for (const query of ['a=%', 'a=%2', 'a=%zz', '%=1', 'a=%ff', 'a=%C3', 'a=%ed%a0%80', 'a=%c0%80']) {
    throwsCode('invalid_query', () => parseQuery(query), query);
  }
});

test('all cookies of one name are read', () => {
  const rows: [string | undefined, ...string[]][] = [
    [undefined],
    [''],
    ['sid=abc', 'abc'],
    ['a=1; sid=abc; b=2', 'abc'],
    ['a=1;sid=abc', 'abc'],
    ['sid=', ''],
    ['sid="abc"', '"abc"'],
    ['sid=a=b', 'a=b'],
    ['SID=abc'],
    ['xsid=abc; sidx=abc'],
    ['sid'],
    ['sid=a; x=1; sid=b', 'a', 'b'],
    ['sid=; sid =', '', ''],
  ];
  for (const [value, ...expected] of rows) {
    assert.deepEqual(readCookies(value === undefined ? fields({}) : fields({ Cookie: value }), 'sid'), expected, value);
  }
  assert.equal(
    serializeCookie('sid', 'abc', 60),
    'sid=abc; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Strict',
  );
  assert.throws(() => serializeCookie('sid', 'a;b', 60));
  assert.throws(() => serializeCookie('sid', 'a\r\nb', 60));
});

test('a cookie header is read once: the cost depends only on its length', () => {
  const many = fields({ Cookie: `${';'.repeat(2 ** 22)}sid=a` });
  assert.deepEqual(readCookies(many, 'sid'), ['a'], 'else it takes minutes');
});

test('the cross-site rule', () => {
  const allowed = new Set(['https://app.example']);
  const rows: [Record<string, string>, boolean][] = [
    [{}, false],
    [{ 'Sec-Fetch-Site': 'same-origin' }, false],
    [{ 'Sec-Fetch-Site': 'none' }, false],
    [{ 'Sec-Fetch-Site': 'same-site' }, true],
    [{ 'Sec-Fetch-Site': 'cross-site' }, true],
    [{ 'Sec-Fetch-Site': '' }, true],
    [{ 'Sec-Fetch-Site': 'Same-Origin' }, true],
    [{ 'Sec-Fetch-Site': 'cross-site', Origin: 'https://app.example' }, false],
    [{ 'Sec-Fetch-Site': 'cross-site', Origin: 'https://api.example' }, true],
    [{ 'Sec-Fetch-Site': 'same-origin', Origin: 'https://evil.example' }, false],
    [{ Origin: 'https://api.example' }, false],
    [{ Origin: 'http://API.example' }, false],
    [{ Origin: 'https://app.example' }, false],
    [{ Origin: 'http://app.example' }, true],
    [{ Origin: 'https://api.example:8443' }, true],
    [{ Origin: 'https://api.example.evil.example' }, true],
    [{ Origin: 'https://evil.example/api.example' }, true],
    [{ Origin: 'https://user@api.example' }, true],
    [{ Origin: 'null' }, true],
    [{ Origin: '' }, true],
    [{ Origin: 'ftp://api.example' }, true],
    [{ Origin: 'https://api.example', Host: 'api.example:443' }, false],
    [{ Origin: 'http://api.example:80', Host: 'API.example' }, false],
    [{ Origin: 'http://api.example', Host: 'api.example:443' }, true],
    [{ Origin: 'https://api.example', Host: 'api.example:80' }, true],
  ];
  for (const [sent, expected] of rows) {
    assert.equal(isCrossSite(fields({ Host: 'api.example', ...sent }), allowed), expected, JSON.stringify(sent));
  }
  assert.equal(isCrossSite(fields({ Origin: 'https://api.example' }), allowed), true, 'without a Host nothing is own');
});

test('CORS answers allowed origins only, and never allows credentials', () => {
  const { withCors } = createCors(parseOrigins(['https://app.example']));
  const names = (raw: readonly string[]): string[] => raw.filter((_, index) => index % 2 === 0);
  assert.deepEqual(withCors([], fields({ Origin: 'https://evil.example' })), ['Vary', 'Origin']);
  assert.deepEqual(withCors(['Vary', 'Cookie'], fields({})), ['Vary', 'Cookie, Origin']);
  assert.deepEqual(names(withCors(['Vary', 'Cookie'], fields({ Origin: 'https://app.example' }))), [
    'Vary',
    'Access-Control-Allow-Origin',
    'Access-Control-Expose-Headers',
  ]);
});

test('CORS of an open server allows the fields that a page names, and credentials, to allowed origins only', () => {
  const origin = 'http://localhost:5173';
  const asked = { 'Access-Control-Request-Headers': 'authorization,x-requested-with' };
  const [open, closed] = [true, false].map((isOpen) => createCors(parseOrigins(['http://localhost:*']), { isOpen }));
  const valueOf = (name: string, raw: readonly string[] = []) => raw[raw.indexOf(name) + 1 || raw.length];
  const named = (sent: object, cors = open) =>
    valueOf('Access-Control-Allow-Headers', cors?.preflight(fields({ ...sent }), 'GET'));
  const credentials = (sent: object, cors = open) =>
    valueOf('Access-Control-Allow-Credentials', cors?.withCors([], fields({ ...sent })));
  assert.equal(named({ Origin: origin, ...asked }), 'authorization,x-requested-with');
  assert.match(named({ Origin: origin }) ?? '', /^Authorization, Content-Type, /);
  assert.doesNotMatch(named({ Origin: origin, ...asked }, closed) ?? 'x-requested-with', /x-requested-with/);
  assert.equal(named({ Origin: 'https://evil.example', ...asked }), undefined);
  assert.equal(credentials({ Origin: origin }), 'true');
  assert.equal(credentials({ Origin: 'https://evil.example' }), undefined);
  assert.equal(credentials({ Origin: origin }, closed), undefined);
});

test('content types: the named media types in UTF-8, without a content coding', () => {
  const types = ['application/json', 'application/merge-patch+json'];
  const good = ['application/json', 'Application/JSON', types[1] ?? '', 'application/json ;charset=utf-8'];
  for (const value of [...good, 'application/json; charset="UTF-8"', 'application/json; v=1', 'application/json;']) {
    assert.doesNotThrow(() => checkContentType(fields({ 'Content-Type': value }), types), value);
  }
  const bad = ['', 'text/plain', 'json', 'application/jsonx', 'application/json, text/plain', 'application/json x'];
  for (const value of [...bad, 'application/json; charset=latin1', 'application/json; charset=', '*/*']) {
    throwsCode('unsupported_media_type', () => checkContentType(fields({ 'Content-Type': value }), types), value);
  }
  throwsCode('unsupported_media_type', () => checkContentType(fields({}), types), 'absent');
  for (const coding of ['gzip', 'identity', '']) {
    const sent = fields({ 'Content-Type': 'application/json', 'Content-Encoding': coding });
    throwsCode('unsupported_media_type', () => checkContentType(sent, types), coding);
  }
});

test("the caller behind trusted proxies is the last address that is not a proxy's", () => {
  const proxies = createProxies(['10.0.0.0/8', '2001:db8::1', '127.0.0.1']);
  const rows: [string, string | undefined, string][] = [
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '1.1.1.1, 198.51.100.1,10.9.9.9', '198.51.100.1'],
    ['10.1.2.3', '10.7.7.7, 10.9.9.9', '10.7.7.7'],
    ['10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
    ['10.1.2.3', 'evil, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
    ['2001:db8::1', '::ffff:198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '1.1.1.1:80, 198.51.100.1:4711, 10.9.9.9:443', '198.51.100.1'],
    ['10.1.2.3', '[2001:db8::2]:4711', '2001:db8::2'],
    ['10.1.2.3', '[2001:db8::2], [2001:db8::1]:1', '2001:db8::2'],
    ['10.1.2.3', '[::ffff:198.51.100.1]:4711', '198.51.100.1'],
    ...['198.51.100.1:x', '198.51.100.1:1:2', '[198.51.100.1', '2001:db8::2]:1', '[]:1', ':1'].map(
      (bad): [string, string, string] => ['10.1.2.3', bad, '10.1.2.3'],
    ),
  ];
  for (const [address, forwarded, expected] of rows) {
    const sent: Record<string, string> = forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded };
    const caller = proxies.callerBehind({ address, encrypted: false }, fields(sent));
    assert.equal(caller.address, expected, `${address} ${forwarded}`);
  }
  const over = (address: string, proto: string): boolean =>
    proxies.callerBehind({ address, encrypted: false }, fields({ 'X-Forwarded-Proto': proto })).encrypted;
  assert.equal(over('10.1.2.3', 'https'), true);
  assert.equal(over('10.1.2.3', 'https, http'), false);
  for (const trusted of ['10.255.0.1', '2001:db8::1']) assert.ok(proxies.has(trusted), trusted);
  for (const stranger of ['203.0.113.9', '2001:db8::2', '']) assert.ok(!proxies.has(stranger), stranger);
  assert.equal(createProxies([]).has('127.0.0.1'), false);
  assert.equal(plainAddress('::ffff:192.0.2.1'), '192.0.2.1');
  for (const entry of ['', 'localhost', '10.0.0.0/33', '::/129', '10.0.0', '10.0.0.0/8/8', '10.0.0.0/-1']) {
    assert.equal(isNetwork(entry), false, entry);
  }
});

test('the share of a caller is counted by its user, else by its address, of IPv6 the first 48 bits', () => {
  assert.equal(callerKey('192.0.2.1', undefined), '192.0.2.1');
  assert.equal(callerKey('2001:db8::1', undefined), callerKey('2001:db8:0:ffff::2', undefined));
  assert.notEqual(callerKey('2001:db8::1', undefined), callerKey('2001:db8:1::1', undefined));
  assert.equal(callerKey('192.0.2.1', 3), callerKey('2001:db8::1', 3));
});

test('RFC 9562 §5.8: request ids are version 8 UUIDs, and never the same twice', () => {
  const next = createRequestIds((size) => Buffer.alloc(size, 0xff));
  assert.equal(next(), 'ffffffff-ffff-8fff-8fff-000000000000');
  assert.equal(next(), 'ffffffff-ffff-8fff-8fff-000000000001');
  const zero = createRequestIds((size) => Buffer.alloc(size));
  assert.equal(zero(), '00000000-0000-8000-8000-000000000000');
  let id = '';
  for (let count = 1; count <= 0x2ffff; count += 1) id = zero();
  assert.equal(id, '00000000-0000-8000-8000-00000002ffff');
});
