import { isScalar, pointerTo, type JsonObject, type JsonValue } from '../base/json.ts';
import { DeclarationError } from '../collections/declaration.ts';
import { parseDeclarations } from '../collections/declaration-file.ts';
import { lengthMax } from '../schema/declaration.ts';
import type { Field } from '../schema/field.ts';
import { ruleViolation } from '../schema/kinds.ts';
import type { Call, Command } from './command.ts';
import { takenNames } from './declarations.ts';
import { Mistakes, numberOf, readRecords } from './json-file.ts';
import { progressOf } from './progress.ts';

export const declareCommand: Command = {
  name: 'declare',
  summary: 'Prints a declaration that fits a file such as json-server has, for --collections',
  operands: ['FILE'],
  options: [],
  run: declare,
};

/** What is known of a collection, and of each of its fields. */
interface Sketch {
  count: number;
  readonly ids: Set<number>;
  readonly fields: Map<string, FieldSketch>;
}
interface FieldSketch {
  count: number;
  /** The kinds that fit all values so far, the narrowest first. */
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
const noRecord = 'it must have a record, which tells its fields';
/** The bounds of texts that a declaration may get; one of many lines may become long. */
const lengths = [200, 1000, 10_000];
const multilineLengthMin = 10_000;

/** A field of a declaration, which is easier to read and to change on one line. */
const fieldInLines = /^ {8}".*\{\n(?: {9,}.*\n)* {8}\}/gm;
const onOneLine = (field: string): string => field.replaceAll(/\n */g, ' ');

async function declare({ terminal, operands: [file = ''] }: Call): Promise<65 | void> {
  const sketches = new Map<string, Sketch>();
  const mistakes = new Mistakes();
  const { onProgress, done } = progressOf(terminal, `reading ${file}`);
  for await (const records of readRecords(file, onProgress)) {
    for (const { collection, pointer, record, problem } of records) {
      if (record === undefined) mistakes.add(`${collection}: ${problem ?? noRecord}`, pointer);
      else
        sketch(record, sketchOf(sketches, collection), (name, phrase) =>
          mistakes.add(`${collection}: ${name} ${phrase}`, pointer + pointerTo(name)),
        );
    }
  }
  done();
  const taken = takenNames();
  for (const name of sketches.keys()) {
    if (taken.includes(name)) mistakes.add(`${name}: it must have another name`, pointerTo(name));
  }
  const named = Array.from(sketches).filter(([name]) => !taken.includes(name));
  const collections = named.map(([name, one]) => declarationOf(name, one, new Map(named)));
  const json = JSON.stringify({ items: false, collections }, null, 2);
  try {
    parseDeclarations(JSON.parse(json), taken);
  } catch (error) {
    if (!(error instanceof DeclarationError)) throw error;
    mistakes.add(`this, which has to be renamed: ${error.message}`, file);
  }
  terminal.out(`${json.replaceAll(fieldInLines, onOneLine)}\n`);
  if (mistakes.lines.length === 0) return;
  for (const line of mistakes.lines) terminal.err(`Cannot represent ${line}\n`);
  terminal.err(`Change ${file} there, and declare it again: cairn import refuses it, too\n`);
  return 65;
}

function sketchOf(sketches: Map<string, Sketch>, collection: string): Sketch {
  const known = sketches.get(collection) ?? { count: 0, ids: new Set(), fields: new Map() };
  sketches.set(collection, known);
  return known;
}

/** Takes one more record into account. A null is an absent value. */
function sketch(
  record: JsonObject,
  known: Sketch,
  report: (name: string, phrase: string) => void,
): void {
  known.count += 1;
  for (const [name, value] of Object.entries(record)) {
    if (name === 'id') {
      const id = numberOf(name, value);
      const violation = ruleViolation({ kind: 'integer', min: 1 }, id);
      if (violation !== undefined) report(name, violation.detail);
      else known.ids.add(Number(id));
    } else if (value !== null) {
      const isList = Array.isArray(value);
      const field = known.fields.get(name) ?? newField(isList);
      known.fields.set(name, field);
      field.count += 1;
      const problem = isList === (field.elements !== undefined) ? fit(field, name, value) : mixed;
      if (problem !== undefined) report(name, problem);
    }
  }
}

const newField = (isList: boolean): FieldSketch => ({
  count: 0,
  kinds: isList ? elementKinds : allKinds,
  longest: 0,
  elements: isList ? 0 : undefined,
  ids: new Set(),
});

const mixed = 'must be of the same kind in all records';

/** Takes one more value of a field into account. Returns the problem, if there is one. */
function fit(field: FieldSketch, name: string, value: JsonValue): string | undefined {
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

function kindOf({ kinds: [kind = longText], longest }: FieldSketch): Field {
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
  { ids, kinds: [first] }: FieldSketch,
  all: ReadonlyMap<string, Sketch>,
): Field | undefined {
  if (ids.size === 0 || first?.kind !== 'integer') return undefined;
  const singular = field.replace(/Ids?$/, '');
  const [to] = [...all.keys()].filter((name) => singularOf(name) === singular);
  const known = to === undefined ? undefined : all.get(to)?.ids;
  if (to === undefined || known === undefined) return undefined;
  return [...ids].every((id) => known.has(id)) ? { kind: 'reference', to } : undefined;
}

/** Returns the name of one record: a word of letters and digits. */
function singularOf(plural: string): string {
  const word = plural.replace(/-+(\w?)/g, (_, letter: string) => letter.toUpperCase());
  if (word === 'people') return 'person';
  if (/ies$/.test(word)) return word.replace(/ies$/, 'y');
  if (/(ss|x|ch|sh)es$/.test(word)) return word.slice(0, -2);
  return /[^s]s$/.test(word) ? word.slice(0, -1) : `${word}Entry`;
}
