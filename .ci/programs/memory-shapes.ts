/**
 * Makes records of many shapes, and prints for each the growth of the heap and the store's count. Run with --expose-gc.
 * Each shape is read as from a file, and written as by a request.
 */
import assert from 'node:assert/strict';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { moreName } from '../../src/schema/field.ts';
import { Table } from '../../src/store/memory/table.ts';
import type { Keys } from '../../src/store/store.ts';
import type { StoredRecord } from '../../src/store/store.ts';

interface Shape {
  readonly make: (n: number) => JsonObject;
  /** Enough for some mebibytes, so that other changes hardly count. */
  readonly count?: number;
  /** The distance between ids. */
  readonly step?: number;
  /** True if V8 takes far less for them, depending on how the objects were made. */
  readonly mayTakeLess?: true;
  readonly unique?: (record: object) => string;
  readonly group?: (record: object) => Keys;
}

/** A text that no other record has. */
const own = (n: number): string => ((n * 2654435761) % 4294967296).toString(36);
const each = (count: number, make: (k: number) => JsonObject[string], name = 'f'): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, k) => [`${name}${k}`, make(k)]));
/** Makes each object of a value as a patch does. */
const patched = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(patched);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, patched(each)]));
};
const listOf = <T>(count: number, make: (k: number) => T): T[] => Array.from({ length: count }, (_, k) => make(k));
const time = (n: number): string => new Date(1_750_000_000_000 + n * 1000).toISOString();
const reference = (record: object): Keys => Number(Reflect.get(record, 'postId'));

const shapes: Readonly<Record<string, Shape>> = {
  'no member of its own': { make: () => ({}) },
  'a truth value': { make: (n) => ({ done: n % 2 === 0 }) },
  'a name': { make: (n) => ({ name: `item ${n}` }) },
  'an item': { make: (n) => ({ name: `item ${n}`, price: n + 0.5, createdAt: time(n), updatedAt: time(n) }) },
  'a name and an integer': { make: (n) => ({ name: `item ${n}`, price: n }) },
  '6 integers': { make: (n) => each(6, (k) => n + k) },
  '30 integers': { make: (n) => each(30, (k) => n + k), count: 3000 },
  '4 fractions': { make: (n) => each(4, (k) => n + k / 10 + 0.05) },
  'fractions in every second record': { make: (n) => each(4, (k) => (n % 2 === 0 ? n + k : n + k / 10 + 0.05)) },
  'a text of 400': { make: (n) => ({ text: `${n}`.padEnd(400, 'x') }), count: 5000 },
  'a text of 400 in Latin-1': { make: (n) => ({ text: `${n}`.padEnd(400, 'é') }), count: 5000 },
  'a text of 400 with one other character': { make: (n) => ({ text: `€${n}`.padEnd(400, 'x') }), count: 5000 },
  'a text of 20,000': { make: (n) => ({ text: `${n}`.padEnd(20_000, 'x') }), count: 1000 },
  '10 texts': { make: (n) => each(10, (k) => `value ${k} ${own(n)}`), count: 5000 },
  '30 short texts': { make: (n) => each(30, (k) => `v${k}${own(n)}`), count: 2000 },
  '10 tags': { make: (n) => ({ tags: listOf(10, (k) => `tag${k}${own(n)}`) }), count: 5000 },
  'a list of 50 fractions': { make: (n) => ({ values: listOf(50, (k) => n + k / 3) }), count: 3000 },
  'a list of 50 integers': { make: (n) => ({ values: listOf(50, (k) => n + k) }), count: 4000 },
  'objects in it': {
    make: (n) => ({
      at: { city: `Rome ${own(n)}`, zip: n }, lines: listOf(2, (k) => ({ n: k, text: `line ${own(n)}` })),
    }),
  },
  'a unique address': {
    make: (n) => ({ email: `User${n}@example.com` }),
    unique: (record) => String(Reflect.get(record, 'email')).toLowerCase(),
  },
  'a reference that is its own': { make: (n) => ({ postId: n, text: `comment ${n}` }), group: reference },
  'a reference as one other': { make: (n) => ({ postId: Math.ceil(n / 2), text: `comment ${n}` }), group: reference },
  'a reference as 99 others': { make: (n) => ({ postId: Math.ceil(n / 100), text: `comment ${n}` }), group: reference },
  'a long unique text': {
    make: (n) => ({ name: `${n}`.padEnd(200, 'x') }),
    count: 5000,
    unique: (record) => String(Reflect.get(record, 'name')).toUpperCase(),
  },
  'references to ids that are texts': {
    make: (n) => ({ tagIds: listOf(20, (k) => `${own(n * 20 + k)}`.padEnd(64, '-')) }),
    count: 2000,
    group: (record) => Array.from(Reflect.get(record, 'tagIds'), (id) => `${id}`),
  },
  'one name of its own': { make: (n) => ({ [moreName]: { [`name ${n}`]: n } }) },
  'one long name of its own': {
    make: (n) => ({ [moreName]: { [`${n}`.padEnd(1000, 'x')]: n } }), count: 5000,
  },
  '5 names of its own': { make: (n) => ({ data: each(5, (k) => k, `${n}.`) }) },
  '20 names of its own': { make: (n) => ({ data: each(20, (k) => k, `${n}.`) }), count: 3000 },
  '127 names of its own': { make: (n) => ({ data: each(127, (k) => k, `${n}.`) }), count: 500 },
  '1,030 names of its own': { make: (n) => ({ data: each(1030, (k) => k, `${n}.`) }), count: 60 },
  '3,000 names of its own': { make: (n) => ({ data: each(3000, (k) => k, `${n}.`) }), count: 30 },
  '10 of 40 names in any order': {
    make: (n) => ({ data: each(10, (k) => k, `${(n * 2654435761 + 40_503 * n * n) % 65_521}.`.slice(0, 1)) }),
  },
  'objects with a name in a list': {
    make: (n) => ({ data: listOf(50, (k) => ({ [`of ${n} and ${k}`]: k })) }), count: 1000,
  },
  'objects with the same names in a list': {
    make: (n) => ({ data: listOf(50, (k) => ({ at: k, of: n })) }), count: 1000,
  },
  'a number as a name': {
    make: (n) => ({ data: listOf(20, () => ({ 1000: n })) }), count: 200, mayTakeLess: true,
  },
  'numbers as names': {
    make: (n) => ({ data: listOf(5, () => ({ 0: n, 900: 1, 1500: 2, 4900: n })) }), count: 200, mayTakeLess: true,
  },
  '200 members': { make: (n) => each(200, (k) => n + k), count: 500 },
  '1,030 members': { make: (n) => each(1030, (k) => n + k), count: 100 },
  'ids far apart': { make: (n) => ({ name: `item ${n}` }), step: 64 },
};

function tableOf({ unique, group }: Shape, sum: { bytes: number }): Table<StoredRecord> {
  return new Table({
    name: 'records',
    parse: (record): StoredRecord => record,
    unique: unique === undefined ? {} : { key: unique },
    groups: group === undefined ? {} : { key: group },
  }, sum);
}

/** Collects until nothing more goes: one collection leaves objects held by finalizers and caches of code. */
function used(): number {
  for (let former = Infinity; ;) {
    global.gc?.();
    const { heapUsed } = process.memoryUsage();
    if (heapUsed > former - 16_384) return heapUsed;
    former = heapUsed;
  }
}

const found: { shape: string; how: string; counted: number; used: number; mayTakeLess: boolean }[] = [];
for (const [name, shape] of Object.entries(shapes)) {
  for (const how of ['read', 'written']) {
    const { make, count = 12_000, step = 1, mayTakeLess = false } = shape;
    const before = used();
    const sum = { bytes: 0 };
    const table = tableOf(shape, sum);
    for (let n = 1; n <= count; n += 1) {
      const id = n * step;
      const fields: JsonObject = JSON.parse(JSON.stringify({ ownerId: 1, ...make(n) }));
      if (how === 'read') table.load(JSON.parse(JSON.stringify({ id, revision: n, ...fields })));
      else {
        const record = { id, revision: n, ...Object(patched(fields)) };
        table.putPending(id, record);
        table.publishPending(id, record, n);
      }
    }
    table.view();
    found.push({ shape: name, how, counted: sum.bytes, used: used() - before, mayTakeLess });
    for (const { id } of table.view().blocks.flat()) table.unload(id);
    assert.equal(sum.bytes, 0, name);
  }
}
process.stdout.write(JSON.stringify(found));
