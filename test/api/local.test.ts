import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test, type TestContext } from 'node:test';
import { declareCollection } from '../../src/collections/define.ts';
import { createLocal } from '../../src/options/local/local.ts';
import { parseOrigins } from '../../src/http/cross-site.ts';
import { Fields } from '../../src/http/fields.ts';
import { CairnError } from '../../src/base/errors.ts';
import { createApp } from '../support/inside.ts';

type Sent = Readonly<Record<string, string>>;

/** Returns the status that a caller without credentials gets. */
function ask(sent: Sent, { share = false, address = '127.0.0.1', method = 'GET', hosts = [] as string[] } = {}) {
  const allowed = parseOrigins(['http://localhost:*']);
  const fields = new Fields(Object.entries({ Host: 'localhost:3000', ...sent }).flat());
  try {
    createLocal({ allowed, share, hosts }).check({ method, fields, address });
    return 200;
  } catch (error) {
    assert.ok(error instanceof CairnError);
    return error.status;
  }
}

const both = { 'X-Forwarded-For': '127.0.0.1', 'X-Forwarded-Host': 'localhost:5173' };

/** The headers of development proxies, as observed with these packages. */
const developed: Readonly<Record<string, Sent>> = {
  'Create React App and Vite (http-proxy with xfwd)': {
    ...both,
    'X-Forwarded-Proto': 'http',
    'X-Forwarded-Port': '5173',
  },
  'Next.js': { ...both, 'X-Forwarded-For': '::1', 'X-Forwarded-Proto': 'http', 'X-Forwarded-Port': '3000' },
  'nginx on this machine': { ...both, 'X-Real-IP': '127.0.0.1', Via: '1.1 nginx' },
  'two proxies': {
    ...both,
    'X-Forwarded-For': '::ffff:127.0.0.1, 127.0.0.1:4711, [::1]:80',
    'X-Forwarded-Host': 'localhost, 127.0.0.1:80',
  },
};

for (const [name, sent] of Object.entries(developed))
  test(`without authentication, a development proxy is served: ${name}`, () => {
    assert.equal(ask(sent), 200);
  });

const forwarded: Readonly<Record<string, Sent>> = {
  'an address elsewhere': { ...both, 'X-Forwarded-For': '203.0.113.7, 127.0.0.1' },
  'an address that is no address': { ...both, 'X-Forwarded-For': 'unknown' },
  'an empty address': { ...both, 'X-Forwarded-For': '127.0.0.1,' },
  'an address in the same network': { ...both, 'X-Forwarded-For': '192.168.1.5' },
  'a name elsewhere': { ...both, 'X-Forwarded-Host': 'app.example' },
  'a name elsewhere behind one of this machine': { ...both, 'X-Forwarded-Host': 'localhost, app.example' },
  'a real address elsewhere': { ...both, 'X-Real-IP': '203.0.113.7' },
  'no name': { 'X-Forwarded-For': '127.0.0.1' },
  'no address': { 'X-Forwarded-Host': 'localhost' },
  'a scheme alone': { 'X-Forwarded-Proto': 'https' },
  'Via alone': { Via: '1.1 proxy' },
  'a scheme that is none': { ...both, 'X-Forwarded-Proto': 'gopher' },
  'a port that is none': { ...both, 'X-Forwarded-Port': 'x' },
  Forwarded: { ...both, Forwarded: 'for=127.0.0.1' },
  'a tunnel': { 'CF-Connecting-IP': '127.0.0.1' },
  'an original host': { ...both, 'X-Original-Host': 'localhost' },
  'a field that nobody knows': { ...both, 'X-Forwarded-User': 'ada' },
};

for (const [what, sent] of Object.entries(forwarded))
  test(`without authentication, a proxy that names ${what} is refused`, () => {
    assert.equal(ask(sent), 421);
  });

test('a field that a proxy sends twice counts each time', () => {
  const raw = [
    'Host',
    'localhost',
    'X-Forwarded-Host',
    'localhost',
    'X-Forwarded-For',
    '203.0.113.7',
    'X-Forwarded-For',
    '::1',
  ];
  const { check } = createLocal({ allowed: parseOrigins([]), share: false, hosts: [] });
  const call = { method: 'GET', address: '127.0.0.1', fields: new Fields(raw) };
  assert.throws(() => check(call), { code: 'misdirected_request' });
});

test('a shared server accepts devices of private networks, and their proxies', () => {
  const near = [
    '127.0.0.1',
    '::1',
    '10.0.2.2',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.5',
    '169.254.1.1',
    '100.64.0.1',
    'fe80::1%eth0',
    'fd00::1',
  ];
  for (const address of near) assert.equal(ask({ Host: '192.168.1.2:3000' }, { share: true, address }), 200, address);
  const far = ['203.0.113.7', '172.32.0.1', '100.128.0.1', '2001:db8::1', '192.169.0.1', '11.0.0.1', ''];
  for (const address of far) assert.equal(ask({}, { share: true, address }), 421, address);
  for (const address of near.slice(2)) assert.equal(ask({}, { address }), 421, address);
  const proxied = { 'X-Forwarded-For': '192.168.1.5', 'X-Forwarded-Host': 'laptop.local' };
  assert.equal(ask(proxied, { share: true }), 200);
  assert.equal(ask({ ...proxied, 'X-Forwarded-For': '203.0.113.7' }, { share: true }), 421);
  assert.equal(ask({ ...proxied, 'X-Forwarded-Host': 'app.example' }, { share: true }), 421);
});

test('a shared server accepts only addresses and local names as its host', () => {
  const hosts = ['dev.example'];
  const good = [
    '192.168.1.2:3000',
    '203.0.113.7',
    '[fe80::1]:3000',
    'laptop',
    'laptop.local',
    'app.localhost',
    'localhost',
    'host.docker.internal:3000',
    hostname(),
    'dev.example',
    'DEV.example:3000',
  ];
  for (const Host of good) assert.equal(ask({ Host }, { share: true, hosts }), 200, Host);
  const bad = ['app.example', 'localhost.example', 'evil.local.example', 'x.dev.example', '192.168.1.2.example', ''];
  for (const Host of bad) assert.equal(ask({ Host }, { share: true, hosts }), 421, Host);
  for (const Host of good.slice(0, 6)) assert.equal(ask({ Host }), 421, Host);
});

test('a shared server accepts pages at private addresses and local names, but not null or a website', () => {
  const { origins } = createLocal({ allowed: parseOrigins([]), share: true, hosts: ['dev.example'] });
  const good = [
    'http://192.168.1.5:5173',
    'http://laptop.local:8080',
    'http://laptop',
    'http://localhost:5173',
    'http://[fe80::1]:80',
    'capacitor://localhost',
    'ionic://localhost',
    'http://dev.example',
    'https://10.0.2.2',
  ];
  for (const origin of good) assert.ok(origins.has(origin), origin);
  const bad = [
    '*',
    'null',
    '',
    'http://evil.example',
    'http://203.0.113.7',
    'http://[2001:db8::1]',
    'http://192.168.1.5.evil.example',
    'file://',
    'capacitor://evil',
    'http://localhost.evil.example',
    'http://evil.example/localhost',
    'http://localhost@evil.example',
    'http://evil.example#.local',
  ];
  for (const origin of bad) assert.ok(!origins.has(origin), origin);
});

/** Pages that must not write, nor read if they say where they are from: what a browser says of each. */
const foreign: Readonly<Record<string, Sent>> = {
  'another site': { Origin: 'http://evil.example', 'Sec-Fetch-Site': 'cross-site' },
  'another site, in an old browser': { Origin: 'http://evil.example' },
  'another site behind a proxy that rewrites Host': {
    Origin: 'http://evil.example:3000',
    'Sec-Fetch-Site': 'same-origin',
  },
  'a sandbox or a file': { Origin: 'null' },
  'a sandbox that looks like this site': { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' },
  'nobody knows where, with Sec-Fetch-Site alone': { 'Sec-Fetch-Site': 'cross-site' },
  'another port, with Sec-Fetch-Site alone': { 'Sec-Fetch-Site': 'same-site' },
};

async function served(t: TestContext, share: boolean) {
  const posts = declareCollection({ name: 'posts', fields: {}, additional: true });
  const only = { auth: 'none', users: false, items: false, dialect: 'json-server' } as const;
  const app = await createApp({ ...only, share, corsOrigins: ['http://localhost:*'], collections: [posts] });
  t.after(app.close);
  return app;
}

for (const share of [false, true]) {
  for (const [page, sent] of Object.entries(foreign)) {
    test(`a page of ${page} reads and writes nothing${share ? ' to a shared server' : ''}`, async (t) => {
      const app = await served(t, share);
      for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', undefined])
        for (const [method, target] of [
          ['POST', '/posts'],
          ['PUT', '/posts/1'],
          ['PATCH', '/posts/1'],
          ['DELETE', '/posts/1'],
        ] as const) {
          const fields = { ...sent, ...(type && { 'Content-Type': type }) };
          const { status } = await app.inject({ method, target, fields, body: '{"a":1}' });
          assert.equal(status, 403, `${method} ${type}`);
        }
      assert.equal((await app.inject({ target: '/posts', fields: sent })).status, 'Origin' in sent ? 403 : 200);
      assert.equal((await app.inject({ target: '/posts' })).body, '[]');
    });
  }
}

test('a page of another site may not read the response', async (t) => {
  for (const share of [false, true]) {
    const app = await served(t, share);
    for (const Origin of ['http://evil.example', 'null', 'http://203.0.113.7']) {
      const { fields } = await app.inject({ target: '/posts', fields: { Origin } });
      assert.equal(fields.get('access-control-allow-origin'), undefined, Origin);
      assert.equal(fields.get('cross-origin-resource-policy'), 'same-origin');
    }
  }
});

test('pages of this machine write, and those of a phone to a shared server', async (t) => {
  const alone = await served(t, false);
  const shared = await served(t, true);
  const write = async (app: typeof alone, Origin: string) => {
    const fields = { Origin, 'Sec-Fetch-Site': 'cross-site', 'Content-Type': 'application/json' };
    return (await app.inject({ method: 'POST', target: '/posts', fields, body: '{}' })).status;
  };
  assert.deepEqual(
    [await write(alone, 'http://localhost:5173'), await write(shared, 'http://localhost:5173')],
    [201, 201],
  );
  for (const origin of ['capacitor://localhost', 'http://192.168.1.5:8100'])
    assert.deepEqual([await write(alone, origin), await write(shared, origin)], [403, 201], origin);
});

test('only a server without authentication is shared', async () => {
  await assert.rejects(createApp({ share: true }), {
    name: 'OptionError',
    option: 'share',
    message: /needs --auth none/,
  });
});
