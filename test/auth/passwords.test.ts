import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { test } from 'node:test';
import { passwordIssues } from '../../src/auth/password-rules.ts';
import { parsePhc, Passwords, scrypt } from '../../src/auth/passwords.ts';
import { createRandom } from '../support/basics.ts';

const owner = 'a.sorglos@meadowlark.example';
const setUp = (scryptCost = 1) =>
  new Passwords({ random: createRandom('passwords'), scryptCost });
const turn = 'user 1';
const codesOf = (password: string, lengthMin = 15, user = owner) =>
  passwordIssues(password, user, lengthMin).map(({ code }) => code);

/** RFC 7914 §12: password, salt, N's exponent, r, p, and the first bytes of the hash. */
const rfc7914 = [
  ['', '', 4, 1, 1, '77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442'],
  ['password', 'NaCl', 10, 8, 16, 'fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162'],
  ['pleaseletmein', 'SodiumChloride', 14, 8, 1, '7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2'],
] as const;

for (const [password, salt, exponent, r, p, expected] of rfc7914) {
  test(`RFC 7914 section 12: scrypt of "${password}"`, async () => {
    const hash = await scrypt(password, Buffer.from(salt), { exponent, r, p }, 64);
    assert.equal(hash.subarray(0, 32).toString('hex'), expected);
  });
}

test('a hash is a PHC string with a random salt, and verifies only its password', async () => {
  const passwords = setUp();
  const hash = () => passwords.hash('ein gutes Passwort', turn);
  const [one, two] = await Promise.all([hash(), hash()]);
  assert.match(one, /^\$scrypt\$ln=1,r=8,p=3\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  assert.notEqual(one, two);
  assert.equal(await passwords.verify('ein gutes Passwort', one, turn), true);
  assert.equal(await passwords.verify('ein gutes Passwort ', one, turn), false);
  assert.equal(await passwords.verify('', one, turn), false);
});

test('no password matches an unknown user', async () => {
  const passwords = setUp();
  assert.equal(await passwords.verify('', undefined, turn), false);
  assert.equal(await passwords.verify('anything', 'not a hash', turn), false);
});

test('a password is normalised before it is hashed', async () => {
  const passwords = setUp();
  const phc = await passwords.hash('Zoe\u0308s Bru\u0308cke\u00a0am Fluss', turn);
  assert.equal(await passwords.verify('Zo\u00ebs Br\u00fccke am\u2003Fluss', phc, turn), true);
  assert.equal(await passwords.verify('Zoes Brucke am Fluss', phc, turn), false);
  assert.equal(await passwords.verify('ﬁ', await passwords.hash('fi', turn), turn), false, 'no compatibility mapping');
});

test('a hash with a different cost is verified and needs a rehash', async () => {
  const phc = await setUp(2).hash('ein gutes Passwort', turn);
  assert.equal(await setUp(3).verify('ein gutes Passwort', phc, turn), true);
  assert.equal(setUp(3).needsRehash(phc), true);
  assert.equal(setUp(2).needsRehash(phc), false);
  for (const [from, to] of [['r=8', 'r=4'], ['p=3', 'p=1']] as const) {
    assert.equal(setUp(2).needsRehash(phc.replace(from, to)), true, to);
  }
  assert.equal(setUp(2).needsRehash('not a hash'), true);
});

test('hashes that are malformed or too expensive match no password', () => {
  const [salt, hash] = ['A'.repeat(22), 'A'.repeat(43)];
  assert.ok(parsePhc(`$scrypt$ln=15,r=8,p=3$${salt}$${hash}`));
  for (const text of [
    '', '$scrypt$', `$argon2id$ln=15,r=8,p=3$${salt}$${hash}`, `$scrypt$ln=0,r=8,p=3$${salt}$${hash}`,
    `$scrypt$ln=21,r=8,p=3$${salt}$${hash}`, `$scrypt$ln=15,r=33,p=3$${salt}$${hash}`,
    `$scrypt$ln=15,r=8,p=17$${salt}$${hash}`, `$scrypt$ln=15,r=0,p=3$${salt}$${hash}`,
    `$scrypt$ln=15,r=8,p=3$${salt}=$${hash}`, `$scrypt$ln=15,r=8,p=3$${salt}$`, `$scrypt$ln=15,r=8,p=3$AAA$${hash}`,
    `$scrypt$ln=15,r=8,p=3$${salt}$${hash.slice(0, 20)}`, `$scrypt$ln=15,r=8,p=3$${salt}$${hash} `,
    `$scrypt$ln=15,r=8,p=3$${salt.slice(0, -1)}B$${hash}`,
  ]) assert.equal(parsePhc(text), undefined, text);
});

/** Compares passwords of unknown users. `done` lists the callers in the order of completion. */
function queue(passwords: Passwords) {
  const done: string[] = [];
  const refused: string[] = [];
  const ask = (caller: string): Promise<void> =>
    passwords.verify('x', undefined, caller).then(
      () => void done.push(caller),
      (error: unknown) => {
        assert.deepEqual([Object(error).code, Object(error).retryAfterSeconds], ['overloaded', 5]);
        refused.push(caller);
      },
    );
  return { done, refused, ask };
}

/**
 * Asserts that hashes began in this order. Of two that run, either may end first: as many as have ended, and one more,
 * had begun.
 */
function assertBegun(ended: readonly string[], order: readonly string[]): void {
  assert.equal(ended.length, order.length);
  const begun = order.slice(0, 1);
  for (const [index, caller] of ended.entries()) {
    begun.push(...order.slice(index + 1, index + 2));
    const place = begun.indexOf(caller);
    assert.ok(place >= 0, `${caller} had not begun: ${ended}`);
    begun.splice(place, 1);
  }
}

test('two hashes run at a time, 32 wait, and one more is refused immediately', async () => {
  const passwords = setUp(10);
  const { done, refused, ask } = queue(passwords);
  const asked = Array.from({ length: 34 }, (_, index) => ask(`user ${index}`));
  await ask('user 34');
  assert.deepEqual(refused, ['user 34']);
  await Promise.all(asked);
  assertBegun(done, Array.from({ length: 34 }, (_, index) => `user ${index}`));
  assert.equal(await passwords.verify('x', undefined, turn), false, 'there is room again');
});

test('callers take turns, and one caller has at most half of the queue', async () => {
  const { done, refused, ask } = queue(setUp(10));
  const asked = Array.from({ length: 40 }, () => ask('attacker 1'));
  asked.push(ask('user 1'), ask('user 2'));
  await Promise.all(asked);
  assert.deepEqual([refused.length, new Set(refused).size], [40 - 2 - 16, 1]);
  assertBegun(done, [...new Array(3).fill('attacker 1'), 'user 1', 'user 2', ...new Array(15).fill('attacker 1')]);
});

test('in a full queue the caller with the most hashes loses one to the others', async () => {
  const { done, refused, ask } = queue(setUp(10));
  const attackers = Array.from({ length: 6 }, (_, index) => `attacker ${index}`);
  const asked = attackers.flatMap((caller) => Array.from({ length: 34 }, () => ask(caller)));
  const before = asked.length;
  asked.push(ask('user 1'), ask('user 2'));
  await Promise.all(asked);
  assert.equal(refused.length + done.length, before + 2);
  assert.ok(!refused.includes('user 1') && !refused.includes('user 2'));
  assert.ok(done.length >= 33, 'hardly a place stays free');
});

test('the next hash starts when one fails', async () => {
  const passwords = new Passwords({ random: createRandom('x'), scryptCost: 60 });
  for (let round = 0; round < 40; round += 1) await assert.rejects(passwords.hash('x', turn));
});

const good = [
  'correct pony battery paperclip', 'Mein Fahrrad hat 3 Gänge', 'xK9#mQ2pLw7@vB4',
  'dragonmonkeyfootballsunshine', '我喜欢在早上喝一杯热茶然后去公园散步',
  'the quality of mercy is not',
  '8205 7719 3346 0913 55', 'a1B2-x9Y8-k3L7-z0', '🦄🌵🎻🧲🪁🛶🧭🪐🦉🍋🔭🪶🥁🧵🚲',
  `x1Kq9${'mZ3vT8pR2w'.repeat(5)}`,
];
for (const password of good) {
  test(`a good password: ${password.slice(0, 40)}`, () => assert.deepEqual(codesOf(password), []));
}

const common = [
  'passwordpassword', 'PasswordPassword1', 'P@ssw0rdP@ssw0rd',
  'password!password', '123456789012345', '543210987654321', '111111111111111', 'aaaaaaaaaaaaaaaa',
  'abababababababab', 'abcdefghijklmnop', 'qwertyuiopasdfgh', 'QWERTYUIOP123456',
  '1q2w3e4r5t6y7u8i', '1qaz2wsx3edc4rfv', 'qazwsxedcrfvtgb', 'adminadminadmin1', 'administrator123',
  'letmeinletmein!!', 'iloveyouiloveyou', 'iloveyou12345678', 'thisismypassword',
  'correcthorsebatterystaple', 'changemechangeme', 'welcomewelcome1', 'Summer2024Summer2024',
  'Liverpool2019!!!', 'qwerty123qwerty123', 'asdfghjklasdfghjkl',
  '000000000000000', 'cairncairncairn', 'superman superman', 'sunshine sunshine', 'zxcvbnmzxcvbnm,',
  'michaeljordan23232323', '               ', 'Password Password Password', 'trustno1trustno1',
  'a'.repeat(1024),
];
for (const password of common) {
  test(`a common password: ${password.slice(0, 40)}`, () => {
    assert.deepEqual(codesOf(password), ['too_common']);
  });
}

test("a password must not contain the user's e-mail address; the name may be in it", () => {
  for (const password of [owner, owner.toUpperCase(), `${owner} 2024`])
    assert.deepEqual(codesOf(password), ['too_common'], password);
  for (const password of ['Anna Maria Sorglos', 'Sorglos12345678', 'P4ssw0rd12345678', 'dragon1990dragon'])
    assert.deepEqual(codesOf(password), [], password);
});

test('a password has at least five different characters', () => {
  for (const password of ['abcdabcdabcdddd', '112211221133112', 'aaaaaaaaaaaaaab'])
    assert.deepEqual(codesOf(password), ['too_common'], password);
  assert.deepEqual(codesOf('abcdeabcdabcddd'), []);
});

test('the length counts characters after normalisation', () => {
  assert.deepEqual(codesOf('xK9#mQ2pLw7@vB', 15), ['too_short']);
  assert.deepEqual(codesOf('🦄🌵🎻🧲🪁🛶🧭🪐🦉🍋🔭🪶🥁🧵', 15), ['too_short']);
  assert.deepEqual(codesOf('xK9#mQ2', 8), ['too_short']);
  assert.deepEqual(codesOf('xK9#mQ2p', 8), []);
  assert.deepEqual(codesOf('e\u0308K9#mQ2', 8), ['too_short']);
  assert.deepEqual(codesOf('', 8), ['too_short']);
  assert.deepEqual(codesOf('password', 8), ['too_common']);
});

test('a password has at most 1,024 bytes, and is checked quickly', () => {
  let seed = 1;
  const letters = Array.from({ length: 1025 }, () => {
    seed = (seed * 48271) % 2147483647;
    return String.fromCharCode(97 + (seed % 26));
  }).join('');
  assert.deepEqual(codesOf(letters.slice(0, 1024)), []);
  assert.deepEqual(codesOf(letters), ['too_long']);
  assert.deepEqual(codesOf('ж'.repeat(513)), ['too_long']);
  const started = process.cpuUsage();
  for (let round = 0; round < 25; round += 1) {
    for (const text of [letters.slice(0, 1024), 'ab'.repeat(512)]) codesOf(text);
  }
  const { user } = process.cpuUsage(started);
  assert.ok(user < 200_000, `${user} µs for 50 passwords`);
});

test('a password with very many combining marks is refused before it is normalised', async () => {
  const marks = `a${'\u0300'.repeat(30_000)}${'\u0316'.repeat(30_000)}`;
  const passwords = setUp();
  const started = process.cpuUsage();
  assert.deepEqual(codesOf(marks), ['too_long']);
  assert.deepEqual(codesOf('xK9#mQ2pLw7@vB4', 15, marks), []);
  assert.equal(await passwords.verify(marks, await passwords.hash('x', turn), turn), false);
  const { user } = process.cpuUsage(started);
  assert.ok(user < 300_000, `${user} µs`);
});

test('an issue points to the password and does not quote it', () => {
  const [issue] = passwordIssues('hunter2', owner, 15);
  assert.equal(issue?.pointer, '/password');
  assert.doesNotMatch(JSON.stringify(issue), /hunter2/);
});

test('a comparison makes one hash, at the stored cost or else at the configured one', async (t) => {
  let hashes = 0;
  const hook = createHook({ init: (_, type) => void (hashes += type === 'SCRYPTREQUEST' ? 1 : 0) }).enable();
  t.after(() => hook.disable());
  const [low, high] = [setUp(1), setUp(2)];
  const [old, fresh] = [await low.hash('a password', turn), await high.hash('a password', turn)];
  for (const phc of [old, fresh, undefined, 'no hash']) {
    for (const password of ['a password', 'another password']) {
      const isRight = password === 'a password' && (phc === old || phc === fresh);
      hashes = 0;
      assert.equal(await high.verify(password, phc, turn), isRight, `${password} for ${phc}`);
      assert.equal(hashes, 1);
    }
  }
});

