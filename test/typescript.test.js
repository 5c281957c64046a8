import assert from 'node:assert/strict';
import { test } from 'node:test';

/** Node.js 20 finds only this test, as it is the only one in JavaScript. */
test('this Node.js runs the tests, which are in TypeScript', () => {
  const advice = `Node.js ${process.versions.node} does not read TypeScript: run npm ci, then npm test`;
  assert.ok(process.features.typescript, advice);
});
