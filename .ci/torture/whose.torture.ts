/** Random requests for records that their callers may not read; CAIRN_WHOSE_QUESTIONS sets how many. */
import { test } from 'node:test';
import { sendRandomRequests } from '../../test/support/whose.ts';

const count = Number(process.env['CAIRN_WHOSE_QUESTIONS'] ?? 100_000);

test(`no answer tells of a record that its caller may not read: ${count} questions by chance`, () =>
  sendRandomRequests('who reads what', count));
