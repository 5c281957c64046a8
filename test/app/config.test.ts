import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  clusterOptions, OptionError, options as ownOptions, settings, type Option,
} from '../../src/config/options.ts';
import {
  readConfig as readFrom, secrets, takeEnvironment, unknownVariables as namesOf, type Config, type Environment,
} from '../../src/config/read.ts';
import { warnOfVariable } from '../../src/cli/advice.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';

const options = { ...ownOptions, ...clusterOptions };
const none = new Map<string, string>();
const warningsOf = (environment: Environment): string[] => namesOf(environment).map(warnOfVariable);

const readConfig = (flags: ReadonlyMap<string, string>, environment: Environment): Config =>
  readFrom({ flags, environment });

test('without flags and variables the defaults hold', () => {
  const { settings: chosen, ...config } = readConfig(none, {});
  for (const name of Object.keys(settings)) assert.deepEqual(Reflect.get(chosen, name), Reflect.get(config, name));
  assert.equal(Object.keys(chosen).length, Object.keys(settings).length);
  assert.deepEqual(config, {
    host: '127.0.0.1', port: 3000, directory: 'data', page: 'on', tlsCert: undefined, tlsKey: undefined,
    adminPassword: undefined, secret: undefined, registration: 'closed', auth: 'required', log: undefined,
    logLevel: 'info', tls: undefined, corsOrigins: [], trustedProxies: [],
    share: false, shareHosts: [],
    basePath: '', hstsSeconds: 31_536_000,
    passwordLengthMin: 15, scryptCost: 15, requireIfMatch: false, memoryMax: undefined,
    recordsPerOwner: undefined, dialect: undefined,
    collections: undefined, cluster: undefined,
  });
});

test('every option is a flag, and a variable that the flag overrides', () => {
  assert.equal(readConfig(none, { CAIRN_PORT: '81' }).port, 81);
  assert.equal(readConfig(new Map([['port', '80']]), { CAIRN_PORT: '81' }).port, 80);
  assert.equal(readConfig(none, { CAIRN_PORT: '' }).port, 3000, 'an empty variable is none');
  assert.equal(readConfig(none, { CAIRN_REQUIRE_IF_MATCH: 'true' }).requireIfMatch, true);
  assert.equal(options.requireIfMatch.variable, 'CAIRN_REQUIRE_IF_MATCH');
});

test('the default of every option is itself allowed', () => {
  for (const { name, parse, default: value, defaultText } of Object.values<Option<unknown>>({ ...options })) {
    if (defaultText === '' || value === undefined) continue;
    assert.deepEqual(parse(defaultText), value, name);
  }
});

const allowed: readonly [flag: string, text: string][] = [
  ['port', '0'], ['port', '65535'], ['host', '::1'], ['host', 'a-b.example'],
  ['cors-origin', 'https://a.example, http://b.example:8080'],
  ['cors-origin', 'http://localhost:*, http://127.0.0.1:*, http://[::1]:*'],
  ['base-path', '/api'], ['base-path', '/v1/my-api'],
  ['cluster', 'http://127.0.0.1:2379,http://[::1]:2379,http://localhost:2379,https://10.0.0.1'],
  ['trust-proxy', '10.0.0.0/8,::1,fd00::/8'], ['password-min', '8'], ['scrypt-cost', '17'], ['auth', 'none'],
  ['dialect', 'json-server'],
];
const refused: readonly [flag: string, text: string][] = [
  ['port', '65536'], ['port', '-1'], ['port', '3e3'], ['port', '0x50'], ['port', ' 80'], ['port', 'tcp://10.0.0.1:80'],
  ['host', 'a b'], ['host', 'http://a'], ['auth', 'None'], ['registration', 'true'], ['log', 'xml'],
  ['data', 'a\0b'],
  ['cors-origin', '*'], ['cors-origin', 'null'], ['cors-origin', 'https://a.example/'],
  ['cors-origin', 'a.example'], ['cors-origin', 'https://a.example:*'], ['cors-origin', 'http://*:*'],
  ['cors-origin', 'https://a.example:443'], ['cors-origin', 'https://A.example'],
  ['cors-origin', 'https://a,https://a'], ['trust-proxy', '10.0.0.0/33'], ['trust-proxy', '10.0.0'],
  ['cluster', 'http://10.0.0.1:2379'], ['cluster', 'http://[::2]:2379'], ['cluster', 'https://a/b'],
  ['trust-proxy', 'proxy'], ['trust-proxy', '10.0.0.0/8/8'],
  ['trust-proxy', ''], ['password-min', '7'], ['scrypt-cost', '21'], ['require-if-match', 'yes'],
  ['base-path', 'api'], ['base-path', '/api/'], ['base-path', '/a b'], ['base-path', '//a'],
];

test('allowed values are accepted', () => {
  for (const [flag, text] of allowed) {
    assert.doesNotThrow(() => readConfig(new Map([[flag, text]]), {}), `${flag} ${text}`);
  }
});

test('a value that is not allowed is one line with the option, the value and the allowed values', () => {
  for (const [flag, text] of refused) {
    const option = Object.values(options).find(({ name }) => name === flag);
    assert.ok(option, flag);
    const expected = new OptionError(`Cannot use --${flag} ${JSON.stringify(text)}: must be ${option.allowed}`);
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
    [[['auth', 'none'], ['host', '0.0.0.0']], /--auth: none is allowed only with --host 127.0.0.1/],
    [[['auth', 'none'], ['host', '127.example']], /--auth: none/],
    [[['cluster-prefix', 'a/']], /^Cannot use --cluster-prefix: it has no effect without --cluster$/],
    [[['cluster-user', 'ada']], /^Cannot use --cluster-user: it has no effect without --cluster$/],
  ];
  for (const [flags, message] of cases) {
    assert.throws(() => readConfig(new Map(flags), {}), { name: 'OptionError', message });
  }
});

test('secrets come from a variable or a file, never both, and are never quoted', (t) => {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'secret');
  const secret = 'ä secret of the tests: 32 bytes';
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
      if (error instanceof OptionError) return error.message;
    }
    return 'nothing was thrown';
  };
  const cases: readonly [Record<string, string>, RegExp][] = [
    [{ CAIRN_SECRET: 'hunter2hunter2' }, /^Cannot use CAIRN_SECRET: must be .* bytes, at least 8 of them different$/],
    [{ CAIRN_SECRET: 'abcdefgh'.repeat(129) }, /^Cannot use CAIRN_SECRET: must be .* of 32 to 1024 bytes/],
    [{ CAIRN_SECRET: 'a'.repeat(32) }, /^Cannot use CAIRN_SECRET: must be .* at least 8 of them different$/],
    [{ CAIRN_SECRET_FILE: short }, /^Cannot use CAIRN_SECRET_FILE: must be a random text/],
    [{ CAIRN_SECRET: secret, CAIRN_SECRET_FILE: file }, /^Cannot use CAIRN_SECRET_FILE: CAIRN_SECRET is set as well$/],
    [{ CAIRN_SECRET_FILE: join(directory, 'absent') }, /^Cannot use CAIRN_SECRET_FILE: .*\(ENOENT\)$/],
  ];
  for (const [environment, expected] of cases) assert.match(message(environment), expected);
  for (const name of Object.keys(secrets)) {
    assert.ok(!Object.values(options).some(({ variable }) => variable === name), `${name} is no flag`);
  }
});

test('an unknown variable that looks like an option is reported, with the one that was probably meant', () => {
  const environment = { CAIRN_PROT: '1', CAIRN_PORT: '1', CAIRN_SECRET_FILE: 'x', PATH: 'x', CAIRN_DATA_FILE: 'x' };
  assert.deepEqual(warningsOf(environment), [
    'The variable CAIRN_DATA_FILE is not an option; did you mean "CAIRN_DATA"?',
    'The variable CAIRN_PROT is not an option; did you mean "CAIRN_PORT"?',
  ]);
  assert.deepEqual(warningsOf({ CAIRN_WHICH_HAS_A_LONG_NAME_LIKE_NO_OTHER: '1' }), [
    'The variable CAIRN_WHICH_HAS_A_LONG_NAME_LIKE_NO_OTHER is not an option',
  ]);
});

test('the variable of a removed option is reported, with what to do instead', () => {
  const metrics =
    'read /metrics (with a key of "cairn user key --read-only"), /livez and /readyz at the port of the server';
  assert.deepEqual(warningsOf({ CAIRN_OPS_PORT: '9464', CAIRN_OPS_HOST: '::1', CAIRN_AT_REST: 'off' }), [
    'The variable CAIRN_AT_REST is not an option; leave it out: an idle server writes small JSON files by itself',
    `The variable CAIRN_OPS_HOST is not an option; ${metrics}`,
    `The variable CAIRN_OPS_PORT is not an option; ${metrics}`,
  ]);
});

test('secrets leave the environment once it is read', () => {
  process.env['CAIRN_SECRET'] = 'a secret that nobody else may see';
  try {
    assert.equal(takeEnvironment()['CAIRN_SECRET'], 'a secret that nobody else may see');
    assert.equal(process.env['CAIRN_SECRET'], undefined);
  } finally {
    delete process.env['CAIRN_SECRET'];
  }
});
