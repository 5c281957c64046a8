import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Route } from '../../src/api/call.ts';
import type { CollectionDefinition } from '../../src/collections/declaration.ts';
import { declareCollection } from '../../src/collections/define.ts';
import { items } from '../../src/collections/items.ts';
import type { App } from '../support/inside.ts';
import { allRoutes } from '../support/contract.ts';
import {
  type Asker, type Cells, type Operation, type Row, type Someone, holds, isByRecord, isListed, mayRead, maySet,
  openWith, findRefusal, toAsker, orStatus, toUsers, expectEvent, findVerdict,
} from '../support/whose.ts';

/** Each access word by itself, and some combined. */
const cells = [
  ['public'], ['optional'], ['user'], ['session'], ['admin'], ['member'], ['editor'], ['owner'], ['assigneeId'],
  ['memberIds'], ['owner', 'editor'], ['session', 'memberIds'],
];
const [first, second] = ['the first', 'the second'];

/** A collection, with its two records as the model has them, and their ids. */
interface Subject {
  readonly name: string;
  readonly access: Cells;
  readonly rows: readonly Row[];
  readonly ids: readonly (number | string)[];
  readonly isSingle: boolean;
}

const accessOf = (cell: readonly string[], create = cell.some(isByRecord) ? ['user'] : cell): Cells =>
  ({ list: cell, create, read: cell, replace: cell, patch: cell, remove: cell });

/** Collections with each cell, some with given ids, and single resources where no record decides. */
function definitions(): (CollectionDefinition & { readonly access: Cells })[] {
  return cells.flatMap((cell, index) => {
    const collection = (name: string, id?: CollectionDefinition['id']) => {
      const nextId = { kind: 'reference', to: name, onDelete: 'clear', optional: true } as const;
      const memberIds = { kind: 'list', of: toUsers, default: [] } as const;
      const assigneeId = { ...toUsers, optional: true } as const;
      const fields = { title: { kind: 'text' }, assigneeId, memberIds, nextId } as const;
      return { name, ...(id && { id }), fields, access: accessOf(cell) };
    };
    const name = `single${index}`;
    const single = { name, single: true, fields: { title: { kind: 'text' } }, access: accessOf(cell) } as const;
    const all = [collection(`made${index}`)];
    if (index % 3 === 1) all.push(collection(`given${index}`, { kind: 'text' }));
    return cell.some(isByRecord) ? all : [...all, single];
  });
}

/** Opens an app with all of it. Two records each: of the user 2, for 3 and 4; and of 5, which refers to the first. */
async function open(t: TestContext) {
  const all = definitions();
  const declared = all.map(({ access, ...each }) => {
    const { read, replace, patch } = access;
    return { ...each, access: 'single' in each ? { read, replace, patch } : access };
  });
  const { app, someones: everybody } = await openWith(declared, true);
  // The keys of a member and an editor cover the keys of all roles.
  const someones = everybody.filter(({ kind, userId }) => kind !== 'key' || userId === 2 || userId === 4);
  t.after(() => app.close());
  const subjects: Subject[] = [];
  const values = { assigneeId: 3, memberIds: [4] };
  for (const { name, access, single, id } of all) {
    if (single) await app.program.single(name).replace({ title: first });
    const ids = id ? ['a', 'b'] : [1, 2];
    const rows = rowsOf(values);
    for (const [index, ownerId] of single ? [] : [[0, 2], [1, 5]]) {
      const more = index === 0 ? values : {};
      const json = { ...(id && { id: ids[index ?? 0] ?? 0 }), title: index === 0 ? first : second, ...more };
      // Elsewhere nobody's own counts.
      const as = isDecided(access) ? { as: Number(ownerId) } : {};
      await app.collection(name).create(json, as);
    }
    if (!single) await app.collection(name).change(ids[1] ?? 0, { nextId: ids[0] ?? 0 });
    subjects.push({ name, access, rows, ids, isSingle: single === true });
  }
  const access = { ...accessOf(['owner']), list: ['user'], create: ['user'], read: ['user'] };
  for (const as of [2, 5]) await app.collection('items').create({ name: 'Lamp', price: 1 }, { as });
  subjects.push({ name: 'items', access, rows: rowsOf({}), ids: [1, 2], isSingle: false });
  return { app, someones, subjects, declared };
}

const rowsOf = (values: Row['values']): Row[] =>
  [2, 5].map((ownerId, index) => ({ id: index + 1, ownerId, version: 1, values: index === 0 ? values : {} }));

const isDecided = ({ read }: Cells): boolean => read.some(isByRecord);

interface Asking {
  readonly target: string;
  readonly json?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
  /** The record that it is about, if it is there. */
  readonly row?: Row | undefined;
  /** The status where the caller has access. */
  readonly passed: number;
}

/** The requests of an operation, which change nothing. */
function requestsOf(operation: Operation | 'createMany', { name, ids, rows, isSingle }: Subject): Asking[] {
  const stale = { 'if-match': '"none"' };
  const whole = name === 'items' ? { name: 'Chair', price: 2 } : { title: 'none' };
  const each = [...ids, 99].map((id, index) => [`/${name}/${id}`, rows[index]] as const);
  const paths = isSingle ? [[`/${name}`, rows[0]] as const] : each;
  switch (operation) {
    case 'list': return [{ target: `/${name}`, passed: 200 }];
    case 'create': return [{ target: `/${name}`, json: {}, passed: 422 }];
    case 'createMany': return [{ target: `/${name}/batch`, json: [{}], passed: 422 }];
    case 'read': return paths.map(([target, row]) => ({ target, row, passed: 200 }));
    case 'remove': return paths.map(([target, row]) => ({ target, row, fields: stale, passed: 412 }));
    case 'replace': return paths.map(([target, row]) => ({ target, row, json: whole, fields: stale, passed: 412 }));
    case 'patch': return paths.map(([target, row]) => ({ target, row, json: {}, fields: stale, passed: 412 }));
  }
}

test('every operation of every kind of collection responds to every kind of caller as the model says', async (t) => {
  const { app, someones, subjects, declared } = await open(t);
  const table: readonly Route[] = await allRoutes([items, ...declared.map((each) => declareCollection(each))]);
  const operated = table.flatMap(({ method, of }) =>
    of === undefined || of.collection.isUsers ? [] : [{ method, ...of }]);
  const singles = subjects.filter(({ isSingle }) => isSingle).length;
  assert.equal(operated.length, 7 * (subjects.length - singles) + 3 * singles);
  let asked = 0;
  for (const { method, operation, collection } of operated) {
    const subject = subjects.find(({ name }) => name === collection.name);
    assert.ok(subject);
    for (const someone of someones) {
      for (const asking of requestsOf(operation, subject)) {
        await check(app, subject, operation, method, someone, asking);
        asked += 1;
      }
    }
  }
  assert.ok(asked > 3000, String(asked));
});

/** Asks, and holds the answer against the model. */
async function check(
  app: App, subject: Subject, operation: Operation | 'createMany', method: string, someone: Someone,
  { target, json, fields, row, passed }: Asking,
): Promise<void> {
  const { access } = subject;
  const cell = operation === 'createMany' ? 'create' : operation;
  const who = toAsker(access[cell], someone);
  const refused =
    cell === 'list' || cell === 'create' ? findRefusal(access, cell, who) : findVerdict(access, cell, who, row);
  const typed = json === undefined ? {} : { 'content-type': 'application/json' };
  const body = json === undefined ? undefined : JSON.stringify(json);
  const { address } = someone;
  const reply = await app.inject({ method, target, fields: { ...someone.fields, ...typed, ...fields }, body, address });
  const message = `${method} ${target} of ${access[cell].join()} by ${someone.name}: ${reply.body}`;
  assert.equal(reply.status, refused ?? passed, message);
  if (reply.status >= 400) assert.doesNotMatch(reply.body, /the first|the second/, message);
  if (cell === 'list' && reply.status === 200)
    assert.deepEqual(idsIn(JSON.parse(reply.body)), listedBy(subject, who), message);
}

const idsIn = (records: readonly { readonly id: unknown }[]): unknown[] => records.map(({ id }) => id);
const listedBy = ({ access, rows, ids }: Subject, who: Asker): unknown[] =>
  rows.flatMap((row) => (isListed(access, who, row) ? [ids[row.id - 1]] : []));

test('every kind of caller sees embedded records that it may read or list', async (t) => {
  const { app, someones, subjects } = await open(t);
  for (const subject of subjects.filter(({ name, isSingle }) => !isSingle && name !== 'items')) {
    const { name, access, ids, rows: [one, other] } = subject;
    assert.ok(one !== undefined && other !== undefined);
    for (const someone of someones) {
      const who = toAsker(access.read, someone);
      const get = async (target: string) => {
        const { status, body } = await app.inject({ target, fields: someone.fields, address: someone.address });
        return { status, json: Object(JSON.parse(body)) };
      };
      const message = `${name} of ${access.read.join()} by ${someone.name}`;
      const { status, json } = await get(`/${name}/${ids[1]}?embed=nextId`);
      assert.equal(status, findVerdict(access, 'read', who, other) ?? 200, message);
      if (status === 200) assert.equal(json.next?.title, mayRead(access, who, one) ? first : undefined, message);
      const list = await get(`/${name}?embed=${name}`);
      assert.equal(list.status, findRefusal(access, 'list', who) ?? 200, message);
      if (list.status !== 200) continue;
      const [embedding] = list.json.filter(({ id }: { id: unknown }) => id === ids[0]);
      if (embedding !== undefined)
        assert.deepEqual(idsIn(embedding[name]), isListed(access, who, other) ? [ids[1]] : [], message);
    }
  }
});

test('a program that acts for any kind of caller gets what the model says', async (t) => {
  const { app, someones, subjects } = await open(t);
  for (const { name, access, ids, rows, isSingle } of subjects) {
    for (const who of someones) {
      const options = { as: who.as, ifVersion: '"none"' };
      const { as } = who;
      const message = `${name} of ${access.read.join()} by ${who.name}`;
      const whole = name === 'items' ? { name: 'Chair', price: 2 } : { title: 'none' };
      if (isSingle) {
        const single = app.program.single(name);
        const got = await orStatus(() => single.get({ as }));
        assert.deepEqual(got, findRefusal(access, 'read', who) ?? { title: first }, message);
        for (const operation of ['replace', 'patch'] as const) {
          const change = operation === 'patch' ? single.change : single.replace;
          assert.equal(
            await orStatus(() => change(whole, options)),
            findRefusal(access, operation, who) ?? 412,
            message,
          );
        }
        continue;
      }
      const records = app.collection(name);
      const listed = await orStatus(async () =>
        idsIn((await records.list({ as })).records.map((each) => Object(each))));
      const subject = { name, access, ids, rows, isSingle };
      assert.deepEqual(listed, findRefusal(access, 'list', who) ?? listedBy(subject, who), message);
      assert.equal(
        await orStatus(() => records.create({}, { as })),
        findRefusal(access, 'create', who) ?? 422,
        message,
      );
      for (const [index, id] of [...ids, 99].entries()) {
        const row = rows[index];
        const got = await orStatus(async () => Object(records.get(id, { as }) ?? { id: 404 }).id);
        assert.equal(got, findVerdict(access, 'read', who, row) ?? id, message);
        const answers = {
          replace: await orStatus(() => records.replace(id, whole, options)),
          patch: await orStatus(() => records.change(id, {}, options)),
          remove: await orStatus(() => records.remove(id, options)),
        };
        for (const operation of ['replace', 'patch', 'remove'] as const)
          assert.equal(answers[operation], findVerdict(access, operation, who, row) ?? 412, `${operation} ${message}`);
      }
    }
  }
});

test('the feed shows every kind of caller what it may list, and nothing else', async (t) => {
  const { app, someones, subjects } = await open(t);
  const streams = someones.map((who) => {
    const stream = { who, text: '', controller: new AbortController() };
    const onPiece = (piece: string): void => void (stream.text += piece);
    const { signal } = stream.controller;
    const reply = app.inject({ target: '/changes', fields: who.fields, address: who.address, signal, onPiece });
    return Object.assign(stream, { reply });
  });
  const expected = new Map(someones.map((who) => [who, new Array<string>()]));
  for (const { name, access, ids, rows, isSingle } of subjects) {
    const change = name === 'items' ? { price: 3 } : { title: 'changed' };
    if (isSingle) await app.program.single(name).change(change);
    for (const [index, row] of (isSingle ? rows.slice(0, 1) : rows).entries()) {
      const id = isSingle ? null : ids[index] ?? 0;
      if (id !== null) await app.collection(name).change(id, change);
      for (const who of someones) {
        const kind = holds(access.list, who) ? expectEvent(access, who, row, row) : undefined;
        if (kind !== undefined) expected.get(who)?.push(`${kind} ${name} ${id}`);
      }
    }
  }
  await app.collection('items').create({ name: 'The end', price: 1 });
  for (const { who, reply, controller, ...stream } of streams) {
    if (who.userId === undefined) {
      assert.equal((await reply).status, 401);
      continue;
    }
    const found = streams.find((each) => each.who === who) ?? stream;
    while (!found.text.includes('"The end"')) await new Promise(setImmediate);
    controller.abort();
    const events = [...found.text.matchAll(/event: (\w+)\ndata: (.*)\n/g)].map(([, kind, data = '']) => {
      const { collection, id } = JSON.parse(data);
      return `${kind} ${collection} ${id}`;
    });
    assert.deepEqual(events.slice(0, -1), expected.get(who), who.name);
  }
});

/** Each word of a rule for a single field by itself, and some combined. */
const setters = [['admin'], ['member'], ['editor'], ['owner'], ['owner', 'editor'], ['member', 'editor']];

/** What a body gives for the fields of a rule: at the top, with a default, and within an object. */
const givenAs = (price: number, state: string, cost: number) => ({ price, state, shipping: { cost } });
const pointers = ['/price', '/shipping/cost', '/state'];

/** Fields with a rule, in a collection and in a single resource that everyone may read and write. */
function openToSet(set: readonly string[], index: number): (CollectionDefinition & { readonly access: Cells })[] {
  const fields = {
    title: { kind: 'text', default: 'none' },
    price: { kind: 'integer', optional: true, set },
    state: { kind: 'choice', values: ['new', 'paid', 'sent'], default: 'new', set },
    shipping: { kind: 'object', optional: true, fields: { cost: { kind: 'number', optional: true, set } } },
  } as const;
  const access = accessOf(['optional']);
  return [{ name: `orders${index}`, fields, access }, { name: `shop${index}`, single: true, fields, access }];
}

test('every kind of caller may set a field by HTTP and programs if the model says so', async (t) => {
  const all = setters.flatMap((set, index) => openToSet(set, index).map((each) => ({ set, ...each })));
  const { app, someones } = await openWith(all.map(({ set: _, access, ...each }) => {
    const { read, replace, patch } = access;
    return { ...each, access: each.single ? { read, replace, patch } : access };
  }));
  t.after(() => app.close());
  const [stored, other] = [givenAs(1, 'paid', 1), givenAs(2, 'sent', 2)];
  const rows = [2, 5].map((ownerId, index): Row => ({ id: index + 1, ownerId, version: 1, values: stored }));
  const nobodys: Row = { id: 0, ownerId: 0, version: 1, values: stored };
  let asked = 0;
  for (const { name, single, set, access } of all) {
    if (single) await app.program.single(name).replace(stored);
    else for (const { ownerId } of rows) await app.collection(name).create({}, { as: ownerId });
    if (!single) for (const { id } of rows) await app.collection(name).change(id, stored);
    for (const who of someones) {
      /** Tells which fields of a body are refused. Its title is wrong, so that nothing is written. */
      const refusedIn = async (method: string, target: string, fields: object, prefix = '') => {
        asked += 1;
        const one = { title: 1, ...fields };
        const reply = await app.inject({
          method, target, fields: { ...who.fields, 'content-type': 'application/json' },
          body: JSON.stringify(prefix === '' ? one : [one]), address: who.address,
        });
        if (reply.status !== 422) return reply.status;
        const errors: { pointer: string; code: string }[] = JSON.parse(reply.body).errors;
        return errors.flatMap(({ pointer, code }) => (code === 'read_only' ? pointer.slice(prefix.length) : [])).sort();
      };
      const message = `${set.join()} of ${name} by ${who.name}`;
      const expected = (operation: Operation, row?: Row) =>
        findRefusal(access, operation, who) ?? (maySet(set, who, row) ? [] : pointers);
      if (!single) {
        assert.deepEqual(await refusedIn('POST', `/${name}`, other), expected('create'), message);
        assert.deepEqual(await refusedIn('POST', `/${name}/batch`, other, '/0'), expected('create'), message);
        const none = findRefusal(access, 'create', who) ?? [];
        assert.deepEqual(await refusedIn('POST', `/${name}`, { state: 'new' }), none, `${message}: the default`);
      }
      for (const row of single ? [nobodys] : rows) {
        const target = single ? `/${name}` : `/${name}/${row.id}`;
        for (const [method, operation] of [['PUT', 'replace'], ['PATCH', 'patch']] as const) {
          assert.deepEqual(await refusedIn(method, target, other), expected(operation, row), `${method} ${message}`);
          const none = findRefusal(access, operation, who) ?? [];
          assert.deepEqual(await refusedIn(method, target, stored), none, `${method} ${message}: as it is stored`);
          assert.deepEqual(await refusedIn(method, target, {}), none, `${method} ${message}: left out`);
        }
        await checkProgram(app, name, who, { row, isSingle: single === true, isRefused: !maySet(set, who, row) });
      }
    }
  }
  assert.ok(asked > 3000, String(asked));
});

/** Changes a price as a program for somebody, and puts it back. */
async function checkProgram(
  app: App, name: string, who: Someone,
  { row, isSingle, isRefused }: { readonly row: Row; readonly isSingle: boolean; readonly isRefused: boolean },
): Promise<void> {
  const change = (values: { price: number }, options = {}) =>
    isSingle ? app.program.single(name).change(values, options) : app.collection(name).change(row.id, values, options);
  const refused = who.isReadOnly ? 403 : isRefused ? 422 : undefined;
  const got = await orStatus(async () => Object(await change({ price: 3 }, { as: who.as })).price);
  assert.equal(got, refused ?? 3, `a program with ${name} for ${who.name}`);
  if (refused === undefined) await change({ price: 1 });
}
