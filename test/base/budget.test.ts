import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Budget, type Reservation } from '../../src/base/budget.ts';

test('a caller can reserve its share again after giving it back', () => {
  const budget = new Budget(32, 8);
  const taken = Array.from({ length: 8 }, () => budget.take('user 1', 1));
  assert.equal(budget.take('user 1', 1), undefined);
  assert.ok(budget.take('user 2', 8));
  for (let time = 0; time < 2; time += 1) taken[0]?.release();
  assert.deepEqual([budget.sum, budget.heldBy('user 1')], [15, 7], 'it is given back once');
  assert.ok(budget.take('user 1', 1));
});

test('if the budget is used up, the largest holder loses its oldest reservation', () => {
  const budget = new Budget(32, 8);
  const broken: string[] = [];
  const take = (caller: string, name: string): Reservation | undefined =>
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

test('a single reservation may exceed its caller\'s share', () => {
  const budget = new Budget(32, 8);
  assert.ok(budget.take('user 1', 4)?.resize(20));
  assert.equal(budget.take('user 1', 1), undefined);
});

test('a reservation that cannot grow keeps its amount', () => {
  const budget = new Budget(32, 8);
  const reservation = budget.take('user 1', 20);
  assert.ok(!reservation?.resize(40));
  assert.equal(reservation?.amount, 20);
});

test('a reservation that shrinks makes room for another one', () => {
  const budget = new Budget(32, 8);
  const reservation = budget.take('user 1', 20);
  assert.ok(reservation?.resize(2) && budget.take('user 1', 6));
  assert.ok(!reservation?.resize(3));
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
  budget.take('user 2', 4);
  budget.take('user 3', 2);
  budget.take('user 4', 1);
  budget.take('user 5', 1);
  assert.equal(budget.sum, 16);
  assert.deepEqual(refusedBy(() => budget.take('user 7', 8)), [0, 1, 0], 'nobody holds more');
  assert.deepEqual(refusedBy(() => budget.take('user 6', 1)), [0, 1, 0], 'without the only one, less would be held');
});
