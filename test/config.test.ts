import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { options, readConfig, secrets, unknownVariables } from '../src/config.ts';
import { UsageError } from '../src/settings.ts';
import { temporaryDirectory } from './cli/spawn.ts';

const none = new Map<string, string>();

test('without flags and variables the defaults hold', () => {
  assert.deepEqual(readConfig(none, {}), {
    host: '127.0.0.1', port: 3000, directory: 'data', adminEmail: 'admin@localhost.localdomain',
    adminPassword: undefined, secret: undefined, registration: 'closed', auth: 'required', log: undefined,
    logLevel: 'info', opsHost: '127.0.0.1', opsPort: undefined, tls: undefined, corsOrigins: [], trustedProxies: [],
    accessTokenLifetimeSeconds: 900, sessionIdleSeconds: 43_200, sessionLifetimeSeconds: 604_800, sessionsPerUser: 50,
    passwordLengthMin: 15, scryptCost: 15, bodyBytesMax: 1_048_576, connectionsMax: 8192,
    connectionsPerAddressMax: 1024,
    shutdownGraceSeconds: 0,
    shutdownTimeoutSeconds: 30,
    requireIfMatch: false,
  });
});

test('every option is a flag, and a variable that the flag overrides', () => {
  assert.equal(readConfig(none, { CAIRN_PORT: '81' }).port, 81);
  assert.equal(readConfig(new Map([['port', '80']]), { CAIRN_PORT: '81' }).port, 80);
  assert.equal(readConfig(none, { CAIRN_PORT: '' }).port, 3000, 'an empty variable is none');
  assert.equal(readConfig(none, { CAIRN_REQUIRE_IF_MATCH: 'true' }).requireIfMatch, true);
  assert.equal(options.accessTokenLifetimeSeconds.variable, 'CAIRN_ACCESS_TOKEN_TTL');
});

test('the default of every option is itself allowed', () => {
  for (const option of Object.values(options)) {
    const text = option.defaultText;
    if (text !== '' && option !== options.log) assert.deepEqual(option.parse(text), option.default, option.name);
  }
});

const allowed: readonly [flag: string, text: string][] = [
  ['port', '0'], ['port', '65535'], ['host', '::1'], ['host', 'a-b.example'], ['access-token-ttl', '90s'],
  ['session-max', '365d'], ['body-max', '512KiB'], ['cors-origin', 'https://a.example, http://b.example:8080'],
  ['trust-proxy', '10.0.0.0/8,::1,fd00::/8'], ['password-min', '8'], ['scrypt-cost', '17'], ['auth', 'none'],
];
const refused: readonly [flag: string, text: string][] = [
  ['port', '65536'], ['port', '-1'], ['port', '3e3'], ['port', '0x50'], ['port', ' 80'], ['port', 'tcp://10.0.0.1:80'],
  ['host', 'a b'], ['host', 'http://a'], ['auth', 'None'], ['registration', 'true'], ['log', 'xml'],
  ['data', 'a\0b'],
  ['access-token-ttl', '15'], ['access-token-ttl', '9s'], ['access-token-ttl', '25h'], ['access-token-ttl', '1.5h'],
  ['access-token-ttl', '-1h'], ['body-max', '1MB'], ['body-max', '1B'], ['body-max', '65MiB'],
  ['cors-origin', '*'], ['cors-origin', 'null'], ['cors-origin', 'https://a.example/'],
  ['cors-origin', 'a.example'],
  ['cors-origin', 'https://a.example:443'], ['cors-origin', 'https://A.example'],
  ['cors-origin', 'https://a,https://a'], ['trust-proxy', '10.0.0.0/33'], ['trust-proxy', '10.0.0'],
  ['trust-proxy', 'proxy'], ['trust-proxy', '10.0.0.0/8/8'],
  ['trust-proxy', ''], ['password-min', '7'], ['scrypt-cost', '21'], ['require-if-match', 'yes'],
  ['admin-email', 'nobody'],
];

test('what is allowed is taken', () => {
  for (const [flag, text] of allowed) {
    assert.doesNotThrow(() => readConfig(new Map([[flag, text]]), {}), `${flag} ${text}`);
  }
});

test('what is not allowed is one line that names the option, the value and what is allowed', () => {
  for (const [flag, text] of refused) {
    const option = Object.values(options).find(({ name }) => name === flag);
    assert.ok(option, flag);
    const expected = new UsageError(`Cannot use --${flag} ${JSON.stringify(text)}: must be ${option.allowed}`);
    assert.throws(() => readConfig(new Map([[flag, text]]), {}), expected);
    assert.ok(!expected.message.includes('\n'));
  }
  assert.throws(() => readConfig(none, { CAIRN_PORT: 'tcp://a:80' }), { message: /^Cannot use CAIRN_PORT "tcp/ });
  assert.throws(() => readConfig(new Map([['data', `${'x'.repeat(99)}\n`]]), {}), { message: /"x{60}…": must be/ });
});

test('options that contradict each other are refused', () => {
  const cases: readonly [flags: readonly [string, string][], message: RegExp][] = [
    [[['tls-cert', 'a.pem']], /--tls-cert and --tls-key: each needs the other/],
    [[['tls-key', 'a.pem']], /--tls-cert and --tls-key: each needs the other/],
    [[['session-idle', '2h'], ['session-max', '1h']], /--session-idle: must not be longer than --session-max/],
    [[['session-idle', '12h'], ['session-max', '1h']], /--session-max \(43200 s are more than 3600 s\)/],
    [[['session-idle', '8d']], /--session-max \(691200 s are more than 604800 s\)/],
    [[['auth', 'none'], ['host', '0.0.0.0']], /--auth: none is allowed only with --host 127.0.0.1/],
    [[['auth', 'none'], ['host', '127.example']], /--auth: none/],
  ];
  for (const [flags, message] of cases) {
    assert.throws(() => readConfig(new Map(flags), {}), { name: 'UsageError', message });
  }
});

test('a session that may live for less than the usual idle time is as long idle as it may live', () => {
  const { sessionIdleSeconds, sessionLifetimeSeconds } = readConfig(new Map([['session-max', '1h']]), {});
  assert.deepEqual([sessionIdleSeconds, sessionLifetimeSeconds], [3600, 3600]);
  assert.equal(readConfig(none, { CAIRN_SESSION_MAX: '13h' }).sessionIdleSeconds, 43_200);
});

test('secrets come from a variable or a file, never both, and are never quoted', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'secret');
  const secret = 'ä'.repeat(16);
  const short = join(directory, 'short');
  writeFileSync(short, 'abc');
  writeFileSync(file, `${secret}\n`);
  assert.equal(readConfig(none, { CAIRN_SECRET: secret }).secret, secret);
  assert.equal(readConfig(none, { CAIRN_SECRET_FILE: file }).secret, secret);
  assert.equal(readConfig(none, { CAIRN_ADMIN_PASSWORD_FILE: file }).adminPassword, secret);
  const message = (environment: Record<string, string>): string => {
    try {
      readConfig(none, environment);
    } catch (error) {
      if (error instanceof UsageError) return error.message;
    }
    return 'nothing was thrown';
  };
  const cases: readonly [Record<string, string>, RegExp][] = [
    [{ CAIRN_SECRET: 'hunter2hunter2' }, /^Cannot use CAIRN_SECRET: must have from 32 to 1024 bytes, and has 14$/],
    [{ CAIRN_SECRET: 'x'.repeat(1025) }, /^Cannot use CAIRN_SECRET: .*, and has 1025$/],
    [{ CAIRN_SECRET_FILE: short }, /^Cannot use CAIRN_SECRET_FILE: .*, and has 3$/],
    [{ CAIRN_SECRET: secret, CAIRN_SECRET_FILE: file }, /^Cannot use CAIRN_SECRET_FILE: CAIRN_SECRET is set as well$/],
    [{ CAIRN_SECRET_FILE: join(directory, 'absent') }, /^Cannot use CAIRN_SECRET_FILE: .*\(ENOENT\)$/],
  ];
  for (const [environment, expected] of cases) assert.match(message(environment), expected);
  for (const name of Object.keys(secrets)) {
    assert.ok(!Object.values(options).some(({ variable }) => variable === name), `${name} is no flag`);
  }
});

test('a variable that looks like an option and is none is found', () => {
  const environment = { CAIRN_PROT: '1', CAIRN_PORT: '1', CAIRN_SECRET_FILE: 'x', PATH: 'x', CAIRN_DATA_FILE: 'x' };
  assert.deepEqual(unknownVariables(environment), ['CAIRN_DATA_FILE', 'CAIRN_PROT']);
});
