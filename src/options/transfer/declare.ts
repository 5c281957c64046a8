import { isJsonObject, isScalar, pointerTo, type JsonValue } from '../../base/json.ts';
import { DeclarationError, singularOf } from '../../collections/define.ts';
import { parseDeclarations } from '../../collections/declaration-file.ts';
import { lengthMax } from '../../schema/declaration.ts';
import type { Field } from '../../schema/field.ts';
import { ruleViolation } from '../../schema/kinds.ts';
import { Mistakes, numberOf, readMembers } from './file.ts';

/** What is known of a collection. */
interface Sketch {
  readonly count: number;
  readonly ids: ReadonlySet<number>;
  readonly fields: ReadonlyMap<string, Column>;
}

/** What is known of the values of one field. */
interface Column {
  /** The values that are no null. */
  count: number;
  /** The kinds that fit all of them, the narrowest first. */
  kinds: readonly Field[];
  /** The longest text, in UTF-16 code units. */
  longest: number;
  /** Of values that are lists: the most elements of one. */
  elements: number | undefined;
  /** The values, where the name is that of a reference. */
  readonly ids: Set<number>;
}

const longText = { kind: 'text', multiline: true, max: lengthMax } as const;
const elementKinds: readonly Field[] = [
  { kind: 'integer' },
  { kind: 'number' },
  { kind: 'email' },
  { kind: 'text', max: lengthMax },
  longText,
];
const allKinds: readonly Field[] = [{ kind: 'boolean' }, { kind: 'timestamp' }, ...elementKinds];
/** The bounds of texts that a declaration may get; one of many lines may become long. */
const lengths = [200, 1000, 10_000];
const multilineLengthMin = 10_000;

/** A field of a declaration, which is easier to read and to change on one line. */
const fieldInLines = /^ {8}".*\{\n(?: {9,}.*\n)* {8}\}/gm;
const onOneLine = (field: string): string => field.replaceAll(/\n */g, ' ');

/** What fits a file, and what of the file nothing fits. */
export interface Declared {
  /** A file for `--collections`. */
  readonly json: string;
  /** One line for each cause; empty where the declaration has everything. */
  readonly mistakes: readonly string[];
}

/**
 * Declares the collections of a file. `taken`: names that they cannot have.
 * @throws FatalError as `readMembers`
 */
export function declareFile(file: string, taken: readonly string[]): Declared {
  const mistakes = new Mistakes();
  const sketches = new Map<string, Sketch>();
  for (const [name, value] of readMembers(file)) {
    const report = (problem: string, place = ''): void =>
      mistakes.add(`${name}: ${problem}`, pointerTo(name) + place);
    const known = sketchOf(value, report);
    if (taken.includes(name)) report('it must have another name');
    else if (known !== undefined) sketches.set(name, known);
  }
  const collections = Array.from(sketches, ([name, one]) => declarationOf(name, one, sketches));
  const declaration = { items: false, collections };
  try {
    parseDeclarations(JSON.parse(JSON.stringify(declaration)), taken);
  } catch (error) {
    if (!(error instanceof DeclarationError)) throw error;
    mistakes.add(`this, which has to be renamed: ${error.message}`, file);
  }
  return { json: inLines(declaration), mistakes: mistakes.lines };
}

/** Writes a declaration with a line for each field. */
export const inLines = (declaration: object): string =>
  `${JSON.stringify(declaration, null, 2).replaceAll(fieldInLines, onOneLine)}\n`;

/** Receives a phrase, and the place in the collection where it applies. */
type Report = (problem: string, place?: string) => void;

/** Looks at a collection, column by column; `undefined` where nothing in it can be declared. */
function sketchOf(value: JsonValue, report: Report): Sketch | undefined {
  if (!Array.isArray(value)) return void report('it must be an array of records');
  if (value.length === 0) return void report('it must have a record, which tells its fields');
  const records = value.map((record: JsonValue, index) => {
    if (isJsonObject(record)) return record;
    report('a record must be an object', `/${index}`);
    return {};
  });
  const names = new Set<string>();
  for (const record of records) for (const name in record) names.add(name);
  const sketch = {
    count: records.length,
    ids: new Set<number>(),
    fields: new Map<string, Column>(),
  };
  for (const name of names) {
    const values = records.map((record) =>
      Object.hasOwn(record, name) ? (record[name] ?? null) : null,
    );
    const reportAt = (problem: string, index: number): void =>
      report(`${name} ${problem}`, `/${index}${pointerTo(name)}`);
    if (name === 'id') addIds(sketch.ids, values, reportAt);
    else {
      const column = columnOf(name, values, reportAt);
      if (column.count > 0) sketch.fields.set(name, column);
    }
  }
  return sketch;
}

type ReportAt = (problem: string, index: number) => void;

function addIds(ids: Set<number>, values: readonly JsonValue[], report: ReportAt): void {
  for (const [index, value] of values.entries()) {
    const id = numberOf('id', value);
    const violation = ruleViolation({ kind: 'integer', min: 1 }, id);
    if (violation === undefined) ids.add(Number(id));
    else if (value !== null) report(violation.detail, index);
  }
}

/** Looks at all values of a field. A null is an absent value. */
function columnOf(name: string, values: readonly JsonValue[], report: ReportAt): Column {
  const isList = Array.isArray(values.find((value) => value !== null));
  const kinds = isList ? elementKinds : allKinds;
  const elements = isList ? 0 : undefined;
  const column: Column = { count: 0, kinds, longest: 0, elements, ids: new Set() };
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    column.count += 1;
    const problem = Array.isArray(value) === isList ? fit(column, name, value) : mixed;
    if (problem !== undefined) report(problem, index);
  }
  return column;
}

const mixed = 'must be of the same kind in all records';

/** Takes one more value of a field into account. Returns the problem, if there is one. */
function fit(field: Column, name: string, value: JsonValue): string | undefined {
  const values: readonly JsonValue[] = Array.isArray(value) ? value : [value];
  if (field.elements !== undefined) field.elements = Math.max(field.elements, values.length);
  for (const one of values) {
    if (!isScalar(one)) return 'must be a text, a number, true or false, or a list of such values';
    const id = numberOf(name, one);
    const fits = (kind: Field, form: JsonValue): boolean => ruleViolation(kind, form) === undefined;
    const kinds = field.kinds.filter((kind) => fits(kind, one) || (id !== one && fits(kind, id)));
    if (kinds.length === 0) {
      const kind = typeof one === 'number' ? ({ kind: 'number' } as const) : longText;
      const violation = typeof one === 'boolean' ? undefined : ruleViolation(kind, one);
      return violation?.detail ?? mixed;
    }
    field.kinds = kinds;
    if (typeof one === 'string') field.longest = Math.max(field.longest, one.length);
    if (typeof id === 'number' && /Ids?$/.test(name)) field.ids.add(id);
  }
  return undefined;
}

function declarationOf(name: string, { count, fields }: Sketch, all: ReadonlyMap<string, Sketch>) {
  const times = ['createdAt', 'updatedAt'].filter((time) => fields.has(time));
  const timestamps =
    times.length > 0 &&
    times.every((time) => fields.get(time)?.kinds.some(({ kind }) => kind === 'timestamp'));
  const declared = Array.from(fields).filter(([field]) => !timestamps || !times.includes(field));
  return {
    name,
    singular: singularOf(name),
    fields: Object.fromEntries(
      declared.map(([field, known]) => {
        const one = referenceOf(field, known, all) ?? kindOf(known);
        const { elements } = known;
        const max = elements === undefined || elements <= 50 ? {} : { max: boundOf(elements) };
        const kind = elements === undefined ? one : { kind: 'list', of: one, ...max };
        return [field, { ...kind, ...(known.count < count && { optional: true }) }];
      }),
    ),
    ...(timestamps && { timestamps }),
  };
}

function kindOf({ kinds: [kind = longText], longest }: Column): Field {
  if (kind.kind !== 'text') return kind;
  return {
    ...kind,
    max: boundOf(kind.multiline ? Math.max(longest, multilineLengthMin) : longest),
  };
}

const boundOf = (length: number): number => lengths.find((bound) => bound >= length) ?? lengthMax;

/** A field such as `postId` or `tagIds` refers to `posts` or `tags` if it holds ids of those alone. */
function referenceOf(
  field: string,
  { ids, kinds: [first] }: Column,
  all: ReadonlyMap<string, Sketch>,
): Field | undefined {
  if (ids.size === 0 || first?.kind !== 'integer') return undefined;
  const singular = field.replace(/Ids?$/, '');
  const [to] = [...all.keys()].filter((name) => singularOf(name) === singular);
  const known = to === undefined ? undefined : all.get(to)?.ids;
  if (to === undefined || known === undefined) return undefined;
  return [...ids].every((id) => known.has(id)) ? { kind: 'reference', to } : undefined;
}
