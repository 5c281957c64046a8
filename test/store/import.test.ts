import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runBeforeTests } from '../support/basics.ts';
import { crashImports } from '../support/store/crashes.ts';

const crashes = await runBeforeTests(() => crashImports(2));

test('an import is complete or absent after any crash', (t) => {
  const { states, none, whole } = crashes();
  t.diagnostic(`${states} states: nothing in ${none}, everything in ${whole}`);
  assert.ok(none > 8 && whole > 80, `${none} and ${whole}`);
});
