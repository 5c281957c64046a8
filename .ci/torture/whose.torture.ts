/** Random requests for records that their callers may not read; CAIRN_WHOSE_QUESTIONS sets how many. */
import { test } from 'node:test';
import { sendRandomRequests } from '../../test/support/whose.ts';

const count = Number(process.env['CAIRN_WHOSE_QUESTIONS'] ?? 100_000);

test(`${count} random requests reveal no record that their caller may not read`, () =>
  sendRandomRequests('who reads what', count));
