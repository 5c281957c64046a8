import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Budget, type Holding } from '../../src/base/budget.ts';

/** Takes as many ones as a caller gets. */
function takeAll(budget: Budget, caller: string, holdings: Holding[] = []): number {
  for (let count = 0; ; count += 1) {
    const holding = budget.take(caller, 1);
    if (holding === undefined) return count;
    holdings.push(holding);
  }
}

test('a few callers with full shares leave something to the next ones', () => {
  const budget = new Budget(32, 8);
  const holdings: Holding[] = [];
  const taken = Array.from({ length: 8 }, (_, user) => takeAll(budget, `user ${user}`, holdings));
  assert.deepEqual(taken, [8, 8, 8, 4, 2, 1, 1, 0]);
  assert.equal(budget.sum, 32);
  for (let time = 0; time < 2; time += 1) holdings[0]?.release();
  assert.equal(budget.sum, 31, 'it is given back once');
  assert.ok(budget.hasRoom('user 7', 1) && !budget.hasRoom('user 1', 1));
});

test('the networks of one IPv6 site leave half of what strangers have to others', () => {
  const budget = new Budget(64, 8);
  const networkOf = (number: number): string => `2001:db8:1:${number.toString(16)}`;
  const holdings: Holding[] = [];
  for (let network = 0; network < 100; network += 1) takeAll(budget, networkOf(network), holdings);
  assert.equal(budget.heldBy('2001:db8:1'), 32);
  for (const holding of holdings.splice(16)) holding.release();
  const others = ['2001:db8:2:0', '192.0.2.1', 'user 1', 'user 2'];
  for (const other of others) assert.equal(takeAll(budget, other, holdings), 8, other);
  assert.equal(takeAll(budget, networkOf(200)), 0);
  for (const holding of holdings) holding.release();
  assert.equal(budget.sum, 0);
  assert.equal(takeAll(budget, networkOf(0)), 8);
});

test('callers that have not signed in have half of all, and users the rest', () => {
  const budget = new Budget(32, 8);
  for (let host = 1; host < 100; host += 1) takeAll(budget, `192.0.2.${host}`);
  assert.equal(budget.sum, 16);
  assert.equal(takeAll(budget, 'user 1'), 8);
});

test('where there is no room, the site that holds the most loses its oldest holding', () => {
  const budget = new Budget(32, 8);
  const broken: string[] = [];
  const take = (caller: string, name: string): Holding | undefined =>
    budget.take(caller, 1, () => broken.push(name));
  for (const [user, count] of [8, 8, 8, 4, 2, 1, 1].entries())
    for (let index = 0; index < count; index += 1) take(`user ${user}`, `${index} of ${user}`);
  assert.equal(take('user 0', 'beyond its share'), undefined);
  assert.deepEqual(broken, []);
  assert.ok(take('newcomer 1', 'own'));
  assert.ok(take('newcomer 2', 'own'));
  assert.deepEqual(broken, ['0 of 0', '0 of 1']);
  assert.equal(budget.sum, 32);
  // A caller with nearly as much gets nothing, else each of two would break off the other.
  assert.equal(take('user 2', 'one more'), undefined);
});

test('strangers make room for strangers where they have their half', () => {
  const budget = new Budget(32, 16);
  const broken: string[] = [];
  const take = (caller: string): Holding | undefined => budget.take(caller, 1, () => broken.push(caller));
  for (let count = 0; count < 9; count += 1) take('user 1');
  for (let count = 0; count < 8; count += 1) for (const host of ['192.0.2.1', '192.0.2.2']) take(host);
  assert.ok(take('192.0.2.3'));
  assert.deepEqual([...new Set(broken)], ['192.0.2.1']);
  assert.equal(budget.heldBy('user 1'), 9);
});

test('networks of one site count together where room is made', () => {
  const budget = new Budget(16, 8);
  const broken: string[] = [];
  const take = (caller: string): Holding | undefined => budget.take(caller, 1, () => broken.push(caller));
  for (let network = 0; network < 8; network += 1) take(`2001:db8:1:${network}`);
  assert.ok(take('192.0.2.1'));
  assert.deepEqual(broken, ['2001:db8:1:0']);
});

test('a holding grows and shrinks, and one alone may be larger than the share of a caller', () => {
  const budget = new Budget(32, 8);
  const holding = budget.take('user 1', 4);
  assert.ok(holding?.resize(20));
  assert.equal(budget.take('user 1', 1), undefined);
  assert.ok(!holding?.resize(40));
  assert.equal(holding?.amount, 20);
  assert.ok(holding?.resize(2) && budget.take('user 1', 6));
  assert.ok(!holding?.resize(3));
  assert.equal(budget.sum, 8);
});

test('refusals are counted by their cause', () => {
  const budget = new Budget(16, 8);
  const refusedBy = (work: () => unknown): object => {
    const before = { ...budget.refusals };
    work();
    const { ownShare, usedUp, brokenOff } = budget.refusals;
    return [ownShare - before.ownShare, usedUp - before.usedUp, brokenOff - before.brokenOff];
  };
  budget.take('user 1', 8, () => undefined);
  assert.deepEqual(refusedBy(() => budget.take('user 1', 1)), [1, 0, 0]);
  assert.deepEqual(refusedBy(() => budget.hasRoom('user 1', 1)), [1, 0, 0]);
  budget.take('user 2', 4);
  budget.take('user 3', 2);
  budget.take('user 4', 1);
  budget.take('user 5', 1);
  assert.equal(budget.sum, 16);
  assert.deepEqual(refusedBy(() => budget.hasRoom('user 6', 1)), [0, 1, 0]);
  assert.deepEqual(refusedBy(() => budget.take('user 7', 8)), [0, 1, 0], 'nobody holds more');
  assert.deepEqual(refusedBy(() => budget.take('user 6', 1)), [0, 1, 0], 'without the only one, less would be held');
});
