import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvariantError } from '../../src/base/errors.ts';
import { Router } from '../../src/http/router.ts';

const router = new Router(
  [
    'GET /',
    'GET /items',
    'POST /items',
    'GET /items/{id}',
    'DELETE /items/{id}',
    'GET /items/newest',
    'POST /items/newest/copies/{copy}',
    'PUT /items/newest',
    'PUT /named/{name}',
    'DELETE /named/items',
    'GET /openapi.json',
  ].map((value) => {
    const [method = '', pattern = ''] = value.split(' ');
    return { method, pattern, value };
  }),
);

test('an unknown path costs the same, however many routes there are', () => {
  const routerOf = (collections: number): Router<string> =>
    new Router(
      Array.from({ length: collections }, (_, index) => [`/things${index}`, `/things${index}/{id}`])
        .flat()
        .map((pattern) => ({ method: 'GET', pattern, value: pattern })),
    );
  /** The fastest of five runs, since the machine may be busy. */
  const timeOf = (tried: Router<string>): number => {
    const times = Array.from({ length: 5 }, () => {
      const startedMs = performance.now();
      for (let index = 0; index < 20_000; index += 1) tried.match('GET', `/thing${index}/1?a=${index}`);
      return performance.now() - startedMs;
    });
    return Math.min(...times);
  };
  const [few, many] = [routerOf(1), routerOf(300)];
  timeOf(many);
  const [fewMs, manyMs] = [timeOf(few), timeOf(many)];
  assert.ok(manyMs < 5 * fewMs, `${manyMs} ms with many, ${fewMs} ms with few`);
});

test('a request finds its route, an exact path wins, and HEAD is answered as GET', () => {
  const rows: [method: string, target: string, value: string, parameter: string, query: string][] = [
    ['GET', '/', 'GET /', '', ''],
    ['GET', '/?a=1', 'GET /', '', 'a=1'],
    ['GET', '/items', 'GET /items', '', ''],
    ['HEAD', '/items', 'GET /items', '', ''],
    ['POST', '/items?', 'POST /items', '', ''],
    ['GET', '/items/7', 'GET /items/{id}', '7', ''],
    ['GET', '/items/7?fields=id,name&x=?', 'GET /items/{id}', '7', 'fields=id,name&x=?'],
    ['GET', '/items/newest', 'GET /items/newest', '', ''],
    ['PUT', '/items/newest', 'PUT /items/newest', '', ''],
    ['PUT', '/named/users', 'PUT /named/{name}', 'users', ''],
    ['POST', '/items/newest/copies/2', 'POST /items/newest/copies/{copy}', '2', ''],
    ['GET', '/items/{}', 'GET /items/{id}', '{}', ''],
    ['GET', '/items/%31', 'GET /items/{id}', '%31', ''],
    ['GET', '/items/..', 'GET /items/{id}', '..', ''],
    ['GET', '/items/__proto__', 'GET /items/{id}', '__proto__', ''],
  ];
  for (const [method, target, value, parameter, query] of rows) {
    assert.deepEqual(router.match(method, target), { kind: 'found', value, parameter, query }, `${method} ${target}`);
  }
});

test('a known path with another method differs from an unknown path', () => {
  const rows: [string, string, string][] = [
    ['DELETE', '/items', 'GET, HEAD, OPTIONS, POST'],
    ['OPTIONS', '/items', 'GET, HEAD, OPTIONS, POST'],
    ['get', '/items', 'GET, HEAD, OPTIONS, POST'],
    ['PATCH', '/items/7', 'DELETE, GET, HEAD, OPTIONS'],
    ['DELETE', '/items/newest', 'GET, HEAD, OPTIONS, PUT'],
    ['PATCH', '/items/newest', 'GET, HEAD, OPTIONS, PUT'],
    ['GET', '/named/users', 'OPTIONS, PUT'],
    ['PUT', '/named/items', 'DELETE, OPTIONS'],
    ['TRACE', '/', 'GET, HEAD, OPTIONS'],
    ['__proto__', '/', 'GET, HEAD, OPTIONS'],
  ];
  for (const [method, target, allow] of rows) {
    assert.deepEqual(router.match(method, target), { kind: 'method-not-allowed', allow }, `${method} ${target}`);
  }
});

test('paths are never normalised', () => {
  const targets = [
    '',
    '*',
    'items',
    '//',
    '//items',
    '/items/',
    '/items//',
    '/items//copies/1',
    '/Items',
    '/users/../items',
    '/./items',
    '/items%2f7',
    '/%69tems',
    '/items;v=1',
    '/items/7/',
    '/items/7/copies',
    '/items/7/copies/',
    '/items\\7',
    '/__proto__',
    '/constructor',
    '//evil.example/items',
    '/openapi_json',
  ];
  for (const target of targets) assert.deepEqual(router.match('GET', target), { kind: 'not-found' }, target);
});

test('two patterns that match the same paths are refused with both their names', () => {
  const rows: [string, string][] = [
    ['GET /items/{id}', 'GET /items/{name}'],
    ['GET /items/{id}', 'PUT /items/{name}'],
    ['GET /items/{id}', 'GET /items/{id}'],
    ['GET /items', 'GET /items'],
    ['GET /', 'GET /'],
  ];
  for (const [first, second] of rows) {
    const routes = [first, second].map((value) => {
      const [method = '', pattern = ''] = value.split(' ');
      return { method, pattern, value };
    });
    const expected = (error: unknown): boolean =>
      error instanceof InvariantError && routes.every(({ pattern }) => error.message.includes(pattern));
    assert.throws(() => new Router(routes), expected, `${first} ${second}`);
  }
});

test('a malformed path pattern is refused', () => {
  const wrong = ['', 'items', '/items/', '/{id', '/{}', '/{Id}', '/a{id}', '/{__proto__}', '/a b', '//', '/%20'];
  const patterns = [...wrong, '/{id}/a', '/{id}/', '/{id}/{name}', '{id}', '//{id}', '/a//b', '/items\n'];
  for (const pattern of patterns) {
    assert.throws(() => new Router([{ method: 'GET', pattern, value: 1 }]), InvariantError, pattern);
  }
});
