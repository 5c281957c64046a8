import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { CairnError } from '../../src/base/errors.ts';
import { ClusterError, Etcd, type EtcdOptions, isAt, put, range } from '../../src/options/cluster/etcd.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { makeCertificate } from '../support/http/raw.ts';
import { isLockedRun } from '../support/basics.ts';
import { SmallEtcd, type Fault } from '../support/cluster/small-etcd.ts';

async function open(t: TestContext, members = 1, options: Partial<EtcdOptions> = {}) {
  const small = await SmallEtcd.start(members);
  const etcd = new Etcd({ members: small.addresses, ...options }, 0);
  t.after(async () => {
    etcd.close();
    await small.stop();
  });
  return { small, etcd };
}

const unreachable = (error: unknown): boolean => error instanceof CairnError && error.code === 'store_unavailable';
const refused = (message: RegExp) => (error: unknown): boolean =>
  error instanceof ClusterError && error.exitCode === 78 && message.test(error.message);

const creates = { compare: [isAt('k', 0)], success: [put('k', 'v')], failure: [range('k')] };

/** The members that were asked, in order. */
const asked = (small: SmallEtcd): number[] => small.requests.map(({ member }) => member);

/** Answers the first requests with these faults. */
function failFirst(small: SmallEtcd, ...faults: readonly Fault[]): void {
  const rest = [...faults];
  small.onRequest = () => rest.shift();
}

const tooMany: Fault = { status: 429, code: 8, message: 'etcdserver: too many requests' };
const noLeader: Fault = { status: 503, code: 14, message: 'etcdserver: request timed out' };

for (const [what, fault, notice] of [
  ['is reset', 'lose', /^http:\S+: socket hang up; http:\S+ is asked now; see "etcdctl endpoint health/],
  ['gets 503', noLeader, /^http:\S+ answers 503: .* timed out; http:\S+ is asked now/],
  ['gets 429 for too many requests', tooMany, undefined],
] satisfies [string, Fault, RegExp | undefined][]) {
  test(`a request that ${what} goes to the next member`, async (t) => {
    const notices: string[] = [];
    const { small, etcd } = await open(t, 3, { onNotice: (text) => void notices.push(text) });
    failFirst(small, fault, fault);
    assert.equal((await etcd.txn(creates)).succeeded, true);
    assert.deepEqual(asked(small), [0, 1, 2]);
    await etcd.txn({ success: [range('k')] });
    assert.deepEqual(asked(small), [0, 1, 2, 2], 'the next request goes to the same member');
    if (notice === undefined) assert.deepEqual(notices, []);
    else assert.match(notices.join('\n'), notice);
  });
}

test('a successful request does not report a change of member', async (t) => {
  const notices: string[] = [];
  const { small, etcd } = await open(t, 2, { onNotice: (text) => void notices.push(text) });
  failFirst(small, { heldMs: 300, then: 'apply' }, 'lose');
  const slow = etcd.txn({ success: [range('k')] });
  while (small.requests.length === 0) await delay(5);
  await Promise.all([slow, etcd.txn({ success: [range('k')] })]);
  assert.deepEqual(asked(small), [0, 0, 1]);
  assert.deepEqual(notices.map((notice) => /socket hang up/.test(notice)), [true], notices.join('\n'));
});

test('a repeated transaction finds its own earlier result', async (t) => {
  const { small, etcd } = await open(t);
  failFirst(small, 'apply-unanswered');
  const { succeeded, found } = await etcd.txn(creates);
  assert.deepEqual([succeeded, found[0]?.[0]?.value.toString()], [false, 'v']);
});

test('a refusal is definite unless an earlier attempt got no response', async (t) => {
  const { small, etcd } = await open(t);
  const full: Fault = { status: 429, code: 8, message: 'etcdserver: mvcc: database space exceeded' };
  failFirst(small, full);
  await assert.rejects(etcd.txn(creates), /space exceeded/);
  assert.equal(small.requests.length, 1);
  // The first attempt may still be done while later ones are refused.
  failFirst(small, 'lose', full, full);
  assert.equal((await etcd.txn(creates)).succeeded, true);
  assert.equal(small.requests.length, 5);
});

test('a request is repeated until its signal aborts, with an unknown outcome', async (t) => {
  const { small, etcd } = await open(t, 2);
  small.onRequest = () => noLeader;
  await assert.rejects(etcd.txn(creates, AbortSignal.timeout(1000)), unreachable);
  const rounds = small.requests.length / 2;
  assert.ok(rounds > 0 && rounds <= 12, `${rounds} rounds: a pause comes after each`);
  await small.stop();
  await assert.rejects(etcd.txn(creates, AbortSignal.timeout(1000)), /ECONNREFUSED/);
});

test('a member of another cluster is not used', async (t) => {
  const { small, etcd } = await open(t);
  const other = await SmallEtcd.start();
  t.after(() => other.stop());
  const mixed = new Etcd({ members: [...small.addresses, ...other.addresses] }, 0);
  t.after(() => mixed.close());
  await assert.rejects(mixed.survey('cairn/meta'), refused(/belongs to another cluster/));
  await etcd.txn({ success: [put('k', 'v')] });
  failFirst(small, 'lose');
  const { found } = await mixed.txn({ success: [range('k')] });
  assert.equal(found[0]?.length, 1);
});

test('an etcd that is too old is refused', async (t) => {
  const { small, etcd } = await open(t);
  small.onRequest = () => ({ status: 404, code: 5, message: 'Not Found' });
  await assert.rejects(etcd.survey('cairn/meta'), refused(/answers 404/));
});

test('an unreachable etcd is not refused at the start', async (t) => {
  const { small, etcd } = await open(t);
  await small.stop();
  await etcd.survey('cairn/meta');
  await assert.rejects(etcd.txn(creates, AbortSignal.timeout(100)), unreachable);
});

test("an expired etcd token is renewed, and the request repeated", async (t) => {
  const { small, etcd } = await open(t, 1, { user: { name: 'cairn', password: 'secret' } });
  small.users.set('cairn', 'secret');
  await etcd.txn({ success: [put('k', '1')] });
  small.endTokens();
  await etcd.txn({ success: [put('k', '2')] });
  failFirst(small, { status: 400, code: 3, message: 'etcdserver: revision of auth store is old' });
  await etcd.txn({ success: [put('k', '3')] });
  assert.equal(small.get('k'), '3');
  const paths = small.requests.map(({ path }) => path.replace(/.*\//, ''));
  assert.deepEqual(paths, ['authenticate', 'txn', 'txn', 'authenticate', 'txn', 'txn', 'authenticate', 'txn']);
});

test('a wrong or missing etcd password is a definite refusal', async (t) => {
  const { small, etcd } = await open(t, 1, { user: { name: 'cairn', password: 'wrong' } });
  small.users.set('cairn', 'secret');
  await assert.rejects(etcd.txn(creates), /authentication failed/);
  const anonymous = new Etcd({ members: small.addresses }, 0);
  t.after(() => anonymous.close());
  await assert.rejects(anonymous.txn(creates), /user name is empty/);
});

test('a watch uses the member that responded last', async (t) => {
  const { small, etcd } = await open(t, 2);
  for (const member of [0, 1]) {
    let told = 0;
    const watching = etcd.watch('w/', 2, (keys) => (told = keys.at(-1)?.revision ?? told));
    small.put('w/1', 'x');
    while (told !== small.revision) await delay(5);
    small.endWatches();
    await assert.rejects(watching);
    assert.equal(asked(small).at(-1), member);
    failFirst(small, 'lose');
    await etcd.txn({ success: [range('w/1')] });
  }
});

const noPrograms = isLockedRun && 'a locked-down run starts no other program, such as openssl';
test('TLS verifies etcd\'s certificate and sends a client certificate', { skip: noPrograms }, async (t) => {
  const directory = temporaryDirectory(t);
  const [server, client] = [makeCertificate(directory, 'localhost'), makeCertificate(directory, 'cairn')];
  if (server === undefined || client === undefined) return t.skip('there is no openssl here');
  const small = await SmallEtcd.start();
  const behind = new URL(small.addresses[0] ?? '');
  const asks = { ca: client.cert, requestCert: true, rejectUnauthorized: true };
  const gate = createServer({ ...server, ...asks }, (from, to) => {
    const { method = '', url = '', headers } = from;
    const onward = request({ port: behind.port, method, path: url, headers }, (answer) => answer.pipe(to));
    from.pipe(onward);
  });
  await new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve));
  const members = [`https://localhost:${(gate.address() as AddressInfo).port}`];
  const open = (tls: EtcdOptions['tls']): Etcd => {
    const etcd = new Etcd({ members, ...(tls && { tls }) }, 0);
    t.after(() => etcd.close());
    return etcd;
  };
  t.after(async () => {
    gate.closeAllConnections();
    gate.close();
    await small.stop();
  });
  assert.equal((await open({ ca: server.cert, ...client }).txn(creates)).succeeded, true);
  const stop = () => AbortSignal.timeout(1500);
  await assert.rejects(open({ ...client }).txn(creates, stop()), /self-signed certificate/);
  await assert.rejects(open({ ca: server.cert }).txn(creates, stop()), unreachable);
});
