import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readReason, readStack, toError } from '../../src/base/errors.ts';
import { createApp, defineRoute } from '../../src/index.ts';

const trap = (): never => {
  throw new Error('a trap');
};
const traps: ProxyHandler<Error> = { get: trap, getPrototypeOf: trap, has: trap, ownKeys: trap };
// The stack first, which is otherwise made of the other members when one is defined.
const poisoned = Object.defineProperty(new Error('poisoned'), 'stack', { get: trap });
for (const member of ['message', 'name', 'code']) Object.defineProperty(poisoned, member, { get: trap });

/** Values that a program may throw, although it should throw errors. */
const values: readonly (readonly [name: string, thrown: unknown])[] = [
  ['null', null],
  ['undefined', undefined],
  ['a symbol', Symbol('mine')],
  ['an object that is no text', JSON.parse('{"toString":1,"valueOf":1}')],
  ['an object without a prototype', Object.create(null)],
  ['a proxy that throws', new Proxy(new Error('behind'), traps)],
  ['an object whose prototype throws', Object.create(new Proxy(new Error('behind'), traps))],
  ['an error whose members throw', poisoned],
  ['an error whose members are no texts', Object.assign(new Error('x'), { message: 1n, stack: null })],
];

for (const [name, thrown] of values) {
  test(`has a text: ${name}`, () => {
    for (const text of [readReason(thrown), readStack(thrown)]) assert.equal(typeof text, 'string');
    assert.ok(toError(thrown) instanceof Error);
  });

  test(`a route that throws anything is a 500, logged once: ${name}`, async (t) => {
    const lines: string[] = [];
    const tell = (line: string): void => void lines.push(line);
    const throws = (): never => {
      throw thrown;
    };
    const now = { method: 'GET', path: '/now', access: 'public', summary: 'Throws', handle: throws } as const;
    const later = { ...now, path: '/later', handle: async () => throws() } as const;
    const app = await createApp({
      auth: 'none', routes: [defineRoute(now), defineRoute(later)],
      log: { info() {}, warn: tell, error: tell }, hooks: { afterWrite: throws },
    });
    t.after(() => app.close());
    for (const target of ['/now', '/later']) {
      const { status } = await app.inject({ target });
      assert.equal(status, 500);
      assert.match(lines.splice(0).join('\n'), /^A request met an error \{.*\}$/);
    }
    await app.collection('items').create({ name: 'Pen', price: 1 });
    await new Promise(setImmediate);
    assert.match(lines.splice(0).join('\n'), /^The hook afterWrite failed \{.*\}$/);
  });
}

test('a hook that throws anything refuses the write, and the next write is good', async (t) => {
  let thrown: unknown;
  let isThrowing = true;
  const beforeWrite = (): void => {
    if (isThrowing) throw thrown;
  };
  const app = await createApp({ auth: 'none', hooks: { beforeWrite }, log: { info() {}, warn() {}, error() {} } });
  t.after(() => app.close());
  const content = Buffer.from('{"name":"Pen","price":1}');
  const headers = { 'content-type': 'application/json' };
  for ([, thrown] of values) {
    const { status } = await app.inject({ method: 'POST', target: '/items', headers, body: content });
    assert.ok(status === 422 || status === 500, `${status}`);
  }
  isThrowing = false;
  assert.equal((await app.inject({ method: 'POST', target: '/items', headers, body: content })).status, 201);
  assert.equal(app.collection('items').count(), 1);
});

test('a request goes on if the log throws', async (t) => {
  const written: unknown[] = [];
  t.mock.method(process.stderr, 'write', (text: unknown, done?: () => void) => {
    written.push(text);
    done?.();
    return true;
  });
  const handle = (): never => {
    throw new Error('the route');
  };
  const route = defineRoute({ method: 'GET', path: '/now', access: 'public', summary: 'Throws', handle });
  const app = await createApp({ auth: 'none', routes: [route], log: { info() {}, warn() {}, error: trap } });
  t.after(() => app.close());
  assert.equal((await app.inject({ target: '/now' })).status, 500);
  assert.match(written.join(''), /^The log threw "a trap" for this line: A request met an error/);
});
