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
    'POST /items/{id}/copies/{copy}',
    'PUT /{collection}/newest',
    'GET /openapi.json',
  ].map((value) => {
    const [method = '', pattern = ''] = value.split(' ');
    return { method, pattern, value };
  }),
);

test('a request finds the most specific route, and HEAD that of GET', () => {
  const rows: [string, string, string, Record<string, string>, string][] = [
    ['GET', '/', 'GET /', {}, ''],
    ['GET', '/?a=1', 'GET /', {}, 'a=1'],
    ['GET', '/items', 'GET /items', {}, ''],
    ['HEAD', '/items', 'GET /items', {}, ''],
    ['POST', '/items?', 'POST /items', {}, ''],
    ['GET', '/items/7', 'GET /items/{id}', { id: '7' }, ''],
    ['GET', '/items/7?fields=id,name&x=?', 'GET /items/{id}', { id: '7' }, 'fields=id,name&x=?'],
    ['GET', '/items/newest', 'GET /items/newest', {}, ''],
    ['DELETE', '/items/newest', 'DELETE /items/{id}', { id: 'newest' }, ''],
    ['PUT', '/items/newest', 'PUT /{collection}/newest', { collection: 'items' }, ''],
    ['PUT', '/users/newest', 'PUT /{collection}/newest', { collection: 'users' }, ''],
    ['POST', '/items/1/copies/2', 'POST /items/{id}/copies/{copy}', { id: '1', copy: '2' }, ''],
    ['GET', '/items/%31', 'GET /items/{id}', { id: '%31' }, ''],
    ['GET', '/items/..', 'GET /items/{id}', { id: '..' }, ''],
    ['GET', '/items/__proto__', 'GET /items/{id}', { id: '__proto__' }, ''],
  ];
  for (const [method, target, value, parameters, query] of rows) {
    assert.deepEqual(router.match(method, target), { kind: 'found', value, parameters, query }, `${method} ${target}`);
  }
});

test('a known path with another method is told apart from an unknown path', () => {
  const rows: [string, string, string][] = [
    ['PUT', '/items', 'GET, HEAD, OPTIONS, POST'],
    ['OPTIONS', '/items', 'GET, HEAD, OPTIONS, POST'],
    ['get', '/items', 'GET, HEAD, OPTIONS, POST'],
    ['PATCH', '/items/7', 'DELETE, GET, HEAD, OPTIONS'],
    ['PATCH', '/items/newest', 'DELETE, GET, HEAD, OPTIONS, PUT'],
    ['GET', '/users/newest', 'OPTIONS, PUT'],
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

test('two patterns of which neither is the more specific stop the start, and both are named', () => {
  const rows: [string, string][] = [
    ['/items/{id}', '/items/{name}'],
    ['/items', '/items'],
    ['/{a}/b', '/a/{b}'],
    ['/a/{b}/c/{d}', '/a/b/{c}/{d}'],
    ['/x/{a}/c', '/x/b/{d}'],
  ];
  for (const [first, second] of rows) {
    const routes = [first, second].map((pattern) => ({ method: 'GET', pattern, value: pattern }));
    const expected = (error: unknown): boolean =>
      error instanceof InvariantError && error.message.includes(first) && error.message.includes(second);
    assert.throws(() => new Router(routes), expected, `${first} ${second}`);
    const apart = routes.map((route, index) => ({ ...route, method: index === 0 ? 'GET' : 'PUT' }));
    assert.doesNotThrow(() => new Router(apart), `${first} ${second} of two methods`);
  }
});

test('a route that is no path pattern stops the start', () => {
  const patterns = ['', 'items', '/items/', '/{id', '/{}', '/{Id}', '/a{id}', '/{__proto__}', '/a b', '//', '/%20'];
  for (const pattern of patterns) {
    assert.throws(() => new Router([{ method: 'GET', pattern, value: 1 }]), InvariantError, pattern);
  }
});

test('the order in which routes are added makes no difference', () => {
  const patterns = ['/a/{x}', '/a/b', '/{y}/{x}', '/{y}/b/c', '/a/{x}/c', '/{y}/{x}/c', '/a/b/c'];
  const targets = ['/a/b', '/a/z', '/z/b', '/a/b/c', '/a/z/c', '/z/b/c', '/z/z/c'];
  // "/{y}/b/c" and "/a/{x}/c" conflict, so each goes into a set of its own.
  for (const left of ['/{y}/b/c', '/a/{x}/c']) {
    const kept = patterns.filter((pattern) => pattern !== left);
    const routes = kept.map((pattern) => ({ method: 'GET', pattern, value: pattern }));
    const [forth, back] = [new Router(routes), new Router(routes.toReversed())];
    for (const target of targets) assert.deepEqual(forth.match('GET', target), back.match('GET', target));
  }
});
