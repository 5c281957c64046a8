/** Which declarations open a store and which are D1: a start, a check before it, and the manual agree. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { commands as dataCommands } from '../../src/cli/data.ts';
import { parseDeclarations } from '../../src/collections/declaration-file.ts';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { runCommand } from '../support/cli/terminal.ts';
import { createApp } from '../support/inside.ts';

type Definition = Readonly<Record<string, unknown>>;
const a = (kind: Definition): Definition => ({ fields: { a: kind } });
const text = { kind: 'text' }, integer = { kind: 'integer' }, json = { kind: 'json' };
const object = (fields: Definition, more: Definition = {}): Definition => a({ kind: 'object', fields, ...more });
const choice = (...values: string[]): Definition => ({ kind: 'choice', values });
const list = (of: Definition): Definition => a({ kind: 'list', of });

/** A change of a declaration, an earlier record, and the problem if it is D1. */
const changes: readonly [what: string, from: Definition, record: Definition, to: Definition, problem?: RegExp][] = [
  ['an integer becomes a number', a(integer), { a: 1 }, a({ kind: 'number' })],
  ['a number becomes an integer, and all are', a({ kind: 'number' }), { a: 1 }, a(integer)],
  ['a text becomes json', a(text), { a: 'x' }, a(json)],
  ['an object becomes json', object({ b: integer }), { a: { b: 1 } }, a(json)],
  ['a list becomes json', list(text), { a: ['x'] }, a(json)],
  ['json becomes a text, and all are', a(json), { a: 'x' }, a(text)],
  ['json becomes a text, and one is none', a(json), { a: 1 }, a(text), /"a" that is not of kind text/],
  ['a text becomes nullable', a(text), { a: 'x' }, a({ ...text, nullable: true })],
  ['a null is stored, and is no value any more',
    a({ ...text, nullable: true }), { a: null }, a(text), /"a" that is not/],
  ['a text becomes an integer', a(text), { a: '1' }, a(integer), /"a" that is not of kind integer/],
  ['a new optional field', a(text), { a: 'x' }, { fields: { a: text, b: { ...text, optional: true } } }],
  ['a new field with a default', a(text), { a: 'x' }, { fields: { a: text, b: { ...text, default: '' } } }],
  ['a new required field', a(text), { a: 'x' }, { fields: { a: text, b: text } }, /has no "b"/],
  ['a field less', { fields: { a: text, b: text } }, { a: 'x', b: 'y' }, a(text)],
  ['a field that becomes optional', a(text), { a: 'x' }, a({ ...text, optional: true })],
  ['a field that becomes required, and all have it', a({ ...text, optional: true }), { a: 'x' }, a(text)],
  ['a field that becomes required, and one lacks it', a({ ...text, optional: true }), {}, a(text), /has no "a"/],
  ['other bounds', a(text), { a: 'xxx' }, a({ ...text, max: 1 })],
  ['a choice with fewer values', a(choice('x', 'y')), { a: 'y' }, a(choice('x'))],
  ['a choice becomes a text', a(choice('x')), { a: 'x' }, a(text)],
  ['a new optional member of an object',
    object({ b: integer }), { a: { b: 1 } }, object({ b: integer, c: { ...text, optional: true } })],
  ['a new required member of an object',
    object({ b: integer }), { a: { b: 1 } }, object({ b: integer, c: text }), /"a" that is not/],
  ['a member of another kind',
    object({ b: integer }), { a: { b: 1 } }, object({ b: text }), /"a" that is not of kind object/],
  ['elements of another kind', list(text), { a: ['x'] }, list(integer), /"a" that is not of kind list/],
  ['further members', a(text), { a: 'x' }, { ...a(text), additional: true }],
  ['no further members', { ...a(text), additional: true }, { a: 'x', b: 1 }, a(text)],
  ['other access', a(text), { a: 'x' }, { ...a(text), access: { list: 'admin', create: 'public' } }],
  ['another singular', a(text), { a: 'x' }, { ...a(text), singular: 'other' }],
  ['timestamps', a(text), { a: 'x' }, { ...a(text), timestamps: true }],
  ['made ids become given ones', a(text), { a: 'x' }, { ...a(text), id: { kind: 'integer', given: true } }],
  ['made ids become any', a(text), { a: 'x' }, { ...a(text), id: { kind: 'any' } }],
  ['made ids become texts', a(text), { a: 'x' }, { ...a(text), id: { kind: 'text' } }, /has a number as its id/],
  ['given ids are made, and one is no number of a record',
    { ...a(text), id: { kind: 'integer', given: true } }, { id: 9, a: 'x' }, a(text), /has a number as its id/],
  ['text ids become any',
    { ...a(text), id: { kind: 'text' } }, { id: 'k', a: 'x' }, { ...a(text), id: { kind: 'any' } }],
  ['any ids become texts',
    { ...a(text), id: { kind: 'any' } }, { id: 'k', a: 'x' }, { ...a(text), id: { kind: 'text' } }],
  ['a record is named by its id, not by its number',
    { ...a(text), id: { kind: 'text' } }, { id: 'k', a: 'x' }, { ...a(integer), id: { kind: 'text' } },
    /record "k" has a "a" that is not of kind integer/],
  ['any ids become integers, and one is a text',
    { ...a(text), id: { kind: 'any' } }, { id: 'k', a: 'x' }, { ...a(text), id: { kind: 'integer', given: true } },
    /has a string as its id/],
];

for (const [what, from, record, to, problem] of changes) {
  test(`a changed declaration: ${what}${problem === undefined ? '' : ' [D1]'}`, async (t) => {
    const directory = temporaryDirectory(t);
    const data = join(directory, 'data');
    const file = (definition: Definition) => ({ items: false, collections: [{ name: 'things', ...definition }] });
    const open = (definition: Definition) => {
      const declarations = parseDeclarations(JSON.parse(JSON.stringify(file(definition))), []);
      return createApp({ directory: data, auth: 'none', ...declarations });
    };
    const before = await open(from);
    const made = await before.collection('things').create(JSON.parse(JSON.stringify(record)));
    await before.close();
    const collections = join(directory, 'new.json');
    writeFileSync(collections, JSON.stringify(file(to)));
    const { code, out } = await runCommand(dataCommands, ['check', '--data', data, '--collections', collections]);
    if (problem === undefined) {
      assert.equal(code, 0, out);
      const after = await open(to);
      const id = Object(made).id;
      assert.ok(after.collection('things').get(id) !== undefined);
      await after.close();
    } else {
      assert.equal(code, 78, out);
      assert.match(out, problem);
      assert.match(out, /\[D1\]/);
      await assert.rejects(open(to), problem);
      const again = await open(from);
      assert.deepEqual(again.collection('things').get(Object(made).id), made, 'nothing was changed');
      await again.close();
    }
  });
}
