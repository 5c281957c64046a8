import { test } from 'node:test';
import { askByChance } from '../support/whose.ts';

test('no answer tells of a record that its caller may not read: 800 questions by chance', () =>
  askByChance('who reads what', 800));
