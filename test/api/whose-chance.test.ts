import { test } from 'node:test';
import { askByChance } from '../support/whose.ts';

test('no response reveals a record that its caller may not read, in 800 random requests', () =>
  askByChance('who reads what', 800));
