import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machineWith, makeStore, person, startStore, tick } from '../support/store/fixtures.ts';
import { SimulatedDisk } from '../support/store/simulated-disk.ts';
import { TestClock } from '../support/auth/helpers.ts';

test('a clock that is set while the process runs is told of once, with both times', async () => {
  const [clock, machine] = [new TestClock(), machineWith()];
  const { store, notices } = await startStore({ files: new SimulatedDisk(), clock, machine });
  for (const seconds of [60, -60, 0]) {
    clock.advance(3600);
    clock.step(seconds);
    await tick(machine);
  }
  assert.deepEqual([notices, store.status().clockNotice], [[], undefined], 'a minute is no leap');
  const expected = new Date(clock.now()).toISOString();
  clock.step(-61);
  for (let looks = 0; looks < 2; looks += 1) await tick(machine);
  const notice = `the clock says ${new Date(clock.now()).toISOString()} where ${expected} was expected`;
  assert.equal(store.status().clockNotice, notice);
  assert.deepEqual(notices, [`${notice}: sessions and tokens live by it`]);
  await store.close();
});

test('a start by a clock that is behind the last write says so, with both times', async () => {
  const disk = new SimulatedDisk();
  const first = await startStore({ files: disk });
  await first.store.write((tx) => tx.of(first.people).insert(person('ann')));
  await first.store.close();
  for (const [behindMs, isTold] of [[60_000, false], [60_001, true]] as const) {
    const clock = new TestClock();
    disk.writtenAt = clock.now() + behindMs;
    const { store, notices } = makeStore({ files: disk, clock });
    await store.start();
    const times = 'the clock says 2026-01-02T03:04:05.000Z where 2026-01-02T03:05:05.001Z was expected';
    assert.equal(store.status().clockNotice, isTold ? times : undefined);
    assert.equal(notices.filter((notice) => notice.startsWith(times)).length, Number(isTold));
    await store.close();
  }
});
