/** The one test that an older Node.js finds: it reads no TypeScript, and so none of the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

test('node --test finds the tests, since this Node.js reads TypeScript', () => {
  const hint = `Node.js ${process.versions.node} does not read TypeScript: run npm ci, then npm test`;
  assert.ok(process.features.typescript, hint);
});
