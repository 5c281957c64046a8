import { test } from 'node:test';
import { sendRandomRequests } from '../support/whose.ts';

test('no response reveals a record that its caller may not read, in 800 random requests', () =>
  sendRandomRequests('who reads what', 800));
