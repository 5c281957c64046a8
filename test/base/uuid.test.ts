import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uuid7 } from '../../src/base/uuid.ts';

/** Random bytes. The last ten are from the vector; the time and the version replace the others. */
const vector = (): Buffer => Buffer.from('ffffffffffff0cc318c4dc0c0c07398f', 'hex');

test('RFC 9562 appendix A.6: a UUID of version 7', () => {
  assert.equal(uuid7(0x017f22e279b0, vector), '017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
  const ones = uuid7(2 ** 48 - 1, (size) => Buffer.alloc(size, 0xff));
  assert.equal(ones, 'ffffffff-ffff-7fff-bfff-ffffffffffff');
  assert.equal(uuid7(0, (size) => Buffer.alloc(size)), '00000000-0000-7000-8000-000000000000');
});
