/**
 * The manual's first screens, typed literally in the trouble that they are for. Three small programs play systemd: its
 * units would need a machine of their own.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { administrator, readBlocks, Machine } from './machine.ts';

test('night guide: a damaged store is checked and repaired', async (t) => {
  const machine = await Machine.make(t);
  await machine.use();
  await machine.type('systemctl stop cairn');
  const file = join(machine.data, 'items.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"Lamp"', '"Damp"'));
  await machine.type('systemctl start cairn');
  const [why = ''] = readBlocks('### Does not start');
  const told = await machine.type(why);
  assert.equal(told.status, 78);
  const [, problem = ''] =
    /Cannot open the store: (.*? \[S2\]).*\(see src\/docs\/troubleshooting\.md#damaged\)"/.exec(told.out) ?? [];
  assert.ok(told.out.includes(`failure  ${problem}\n`), `${told.out} says ${problem} twice`);

  const [look = '', replace = ''] = readBlocks('### Damaged');
  assert.equal((await machine.type(look)).status, 0, 'an edit by hand loses nothing');
  assert.equal((await machine.type(replace)).status, 0);
  assert.deepEqual(await machine.itemNames(await machine.signIn()), ['Damp']);
  const backups = join(machine.root, 'var/lib/cairn-backup');
  const damaged = readdirSync(backups).filter((name) => existsSync(join(backups, name, 'items.json')));
  assert.ok(damaged.some((name) => name.startsWith('damaged-')), 'what was damaged is kept');
});

test('night guide: 507 and slow responses', async (t) => {
  const machine = await Machine.make(t);
  await machine.use();
  const [memory = ''] = readBlocks('### 507');
  const { status, out } = await machine.type(memory);
  assert.equal(status, 0, out);
  for (const figure of ['store_state{state="writable"} 1', 'store_records', 'store_memory_bytes', 'data_free_bytes']) {
    assert.ok(out.includes(`cairn_${figure}`), figure);
  }
  const pid = readFileSync(join(machine.root, 'pid'), 'utf8').trim();
  assert.match(readFileSync(`/proc/${pid}/environ`, 'utf8'), /NODE_OPTIONS=--max-old-space-size=1024/);
  await machine.use();
  const [look = ''] = readBlocks('### Slow');
  const slow = await machine.type(look);
  for (const figure of ['event_loop_delay', 'store_append_seconds', 'store_groups_total', 'heap_used_bytes']) {
    assert.ok(slow.out.includes(`cairn_${figure}`), `${figure}: ${slow.out}`);
  }
  const last = slow.out.trim().split('\n').at(-1) ?? '';
  assert.match(last, /"route":"\/(tokens|keys)".*"durationMs":\d/, 'a hash is the slowest');
});

test('night guide: 503 and 429', async (t) => {
  const machine = await Machine.make(t);
  const wrong = { ...administrator, password: 'not the right password' };
  const statuses: number[] = [];
  for (let tries = 0; tries < 6; tries += 1) {
    statuses.push((await machine.request('POST', '/tokens', wrong)).status);
  }
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429]);
  const [throttled = ''] = readBlocks('### 429');
  assert.match((await machine.type(throttled)).out, /^ +6 "address":"127\.0\.0\.1"$/m);
  assert.equal((await machine.request('POST', '/tokens', wrong)).status, 401, 'after the restart');

  const line = machine.logged().split('\n').find((each) => each.includes('"status":429')) ?? '';
  writeFileSync(join(machine.root, 'log'), `${line.replace('"status":429', '"status":503')}\n`);
  const [busy = ''] = readBlocks('### 503');
  assert.match((await machine.type(busy)).out, /^{"status":"ready"}\n +1 "address":"127\.0\.0\.1"$/m);
});

test('night guide: a full disk', async (t) => {
  const machine = await Machine.make(t);
  const [look = ''] = readBlocks('### Disk is full');
  const { status, out } = await machine.type(look);
  assert.equal(status, 0, out);
  assert.match(out, /%[^]*var\/lib\/cairn|var\/lib[^]*ready/);
});

test('night guide: a lost password and a leaked key', async (t) => {
  const machine = await Machine.make(t);
  const [reset = ''] = readBlocks('### Lost password');
  const { out } = await machine.type(reset, 'a password that is new\n');
  assert.match(out, /^1\tadmin\tadmin@localhost\.localdomain\t.*\nadmin@localhost\.localdomain has a new password/m);
  const token = await machine.signIn('a password that is new');
  assert.deepEqual(await machine.itemNames(token), []);

  const [renew = ''] = readBlocks('### Leaked key');
  assert.equal((await machine.type(renew)).status, 0);
  assert.equal((await machine.request('GET', '/items', undefined, token)).status, 401);
  await machine.signIn('a password that is new');
});

test('night guide: a move to another machine', async (t) => {
  const [former, next] = await Promise.all([Machine.make(t), Machine.make(t)]);
  const token = await former.use();
  const [away = '', there = ''] = readBlocks('### Moved to another machine');
  assert.equal((await former.type(away)).status, 0);
  await next.type('systemctl stop cairn');
  await next.type('rm /var/lib/cairn/*');
  const moved = 'var/lib/cairn-backup/moved';
  cpSync(join(former.root, moved), join(next.root, moved), { recursive: true });
  const { status, out } = await next.type(there);
  assert.equal(status, 0, out);
  assert.ok(!readdirSync(next.data).includes('admin-password'));
  assert.equal((await next.request('GET', '/items', undefined, token)).status, 401);
  assert.deepEqual(await next.itemNames(await next.signIn()), ['Lamp']);
});
