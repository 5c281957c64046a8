import assert from 'node:assert/strict';
import { test } from 'node:test';
import { representationWriter } from '../../src/schema/record.ts';

test('a record is written as JSON.stringify writes it, whatever its texts contain', () => {
  const write = representationWriter({ text: { kind: 'text' } });
  const units = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit));
  const texts = [...units, '😀', 'a'.repeat(199), 'a'.repeat(200), `${'a'.repeat(198)}"`, `"${'é'.repeat(300)}`];
  for (const text of texts) assert.equal(write({ text }), JSON.stringify({ text }));
});
