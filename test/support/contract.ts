import assert from 'node:assert/strict';
import type { RouteOptions } from '../../src/api/routes.ts';
import { openApp } from '../../src/app/app.ts';
import { defaultOptions } from '../../src/app/options.ts';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '../../src/base/json.ts';
import type { CollectionDeclaration } from '../../src/collections/declaration.ts';
import { items } from '../../src/collections/items.ts';
import { silentLog } from '../../src/log/log.ts';

export interface Asked {
  readonly method: string;
  readonly target: string;
}

export interface Answered {
  readonly status: number;
  /** By name in lower case. */
  readonly fields: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Fields of the protocol, of caching and of protection, which no operation declares. */
const everywhere = new Set([
  'content-type', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'date', 'cache-control', 'vary',
  'x-content-type-options', 'cross-origin-resource-policy', 'content-security-policy',
  'referrer-policy', 'cross-origin-opener-policy', 'strict-transport-security',
  'access-control-allow-origin', 'access-control-expose-headers',
]);

/** Fails unless the OpenAPI document declares this answer to this request: status, type, fields and body. */
export function checkResponse(document: JsonObject, asked: Asked, answer: Answered): void {
  const [path = '', query = ''] = asked.target.split('?');
  const item = pathItem(document, path);
  const method = asked.method === 'HEAD' ? 'get' : asked.method.toLowerCase();
  const operation = item?.[method];
  const at = `${asked.method} ${path} → ${answer.status}`;
  if (!isJsonObject(operation)) {
    // The document describes neither OPTIONS, which gets headers only, nor the page.
    if (answer.status >= 400) assert.deepEqual(problemViolations(document, answer), [], at);
    else assert.ok(asked.method === 'OPTIONS' || item === undefined, `${at}: there is no such operation`);
    return;
  }
  const { responses } = operation;
  const one = isJsonObject(responses) ? responses[answer.status] : undefined;
  const declared = one ?? (answer.status >= 400 && isJsonObject(responses) ? responses['default'] : undefined);
  assert.ok(isJsonObject(declared), `${at}: the status is not declared; ${answer.body}`);
  const response = typeof declared['$ref'] === 'string' ? resolve(document, declared['$ref']) : declared;
  assert.ok(isJsonObject(response), at);
  checkFields(document, response, answer, at);
  checkContent(document, response, asked.method, query, answer, at);
}

function pathItem(document: JsonObject, path: string): JsonObject | undefined {
  const { paths } = document;
  assert.ok(isJsonObject(paths));
  const fits = (template: string): boolean => {
    const parts = path.split('/');
    const wanted = template.split('/');
    return wanted.length === parts.length && wanted.every((part, index) => part === '{id}' || part === parts[index]);
  };
  const found = Object.entries(paths).filter(([template]) => fits(template)).sort(([a], [b]) => (a < b ? -1 : 1))[0];
  return isJsonObject(found?.[1]) ? found[1] : undefined;
}

function checkFields(
  document: JsonObject,
  { headers }: JsonObject,
  { fields, status }: Answered,
  at: string,
): void {
  const declared = isJsonObject(headers) ? Object.entries(headers) : [];
  for (const [name, value] of declared) {
    const header = isJsonObject(value) && typeof value['$ref'] === 'string' ? resolve(document, value['$ref']) : value;
    const isRequired = isJsonObject(header) && header['required'] === true;
    assert.ok(!isRequired || fields.has(name.toLowerCase()), `${at}: ${name} is missing`);
  }
  const names = new Set(declared.map(([name]) => name.toLowerCase()));
  const undeclared = [...fields.keys()].filter((name) => !names.has(name) && !everywhere.has(name));
  assert.deepEqual(undeclared, [], `${at}: fields that are not declared`);
  assert.ok(status !== 401 || fields.has('www-authenticate'), `${at}: a challenge is missing`);
}

function checkContent(
  document: JsonObject,
  response: JsonObject,
  method: string,
  query: string,
  { fields, body }: Answered,
  at: string,
): void {
  const content = isJsonObject(response['content']) ? response['content'] : {};
  if (method === 'HEAD') {
    assert.equal(body, '', at);
    return;
  }
  const type = fields.get('content-type');
  if (Object.keys(content).length === 0) {
    assert.deepEqual([type, body], [undefined, ''], `${at}: no content is declared`);
    return;
  }
  const media = content[String(type).replace(/;.*/, '')];
  assert.ok(isJsonObject(media), `${at}: the type ${type} is not declared`);
  const isJson = /json/.test(String(type));
  const found = findViolations(document, media['schema'], isJson ? parseJson(body) : body);
  if (/problem/.test(String(type))) checkCode(document, body, at);
  // The query parameter `fields` leaves out others.
  const isPart = /(^|&)fields=/.test(query);
  const wrong = found.filter((violation) => !isPart || !violation.includes(' breaks "required '));
  assert.deepEqual(wrong, [], `${at}: ${body.slice(0, 300)}`);
}

/** Fails unless the code of a problem belongs to its status. */
function checkCode(document: JsonObject, body: string, at: string): void {
  const { code, status }: { code?: string; status?: number } = JSON.parse(body);
  const stated = resolve(document, `#/x-problems/${code}`);
  assert.equal(Object(stated).status, status, at);
}

function problemViolations(document: JsonObject, { fields, body }: Answered): string[] {
  if (body === '') return [];
  if (fields.get('content-type') !== 'application/problem+json') return ['it is no problem+json'];
  const problem: JsonValue = parseJson(body);
  return findViolations(document, { $ref: '#/components/schemas/Problem' }, problem);
}

const annotations = new Set([
  'title', 'description', 'examples', 'example', 'x-default', 'readOnly', 'writeOnly', 'format',
  '$ref', '$comment',
]);

/**
 * Returns every violation of a JSON Schema by `value`, each with its place. It knows the keywords that Cairn's
 * documents use, and throws for any other so that none is overlooked.
 */
export function findViolations(
  document: JsonObject,
  schema: JsonValue | undefined,
  value: JsonValue,
  place = '',
): string[] {
  if (!isJsonObject(schema)) throw new Error(`There is no schema for ${place}`);
  const found: string[] = [];
  const check = (holds: boolean, keyword: string): void => {
    if (!holds) found.push(`${place} breaks "${keyword}"`);
  };
  const inner = (part: JsonValue | undefined, member: JsonValue, at = place): void => {
    found.push(...findViolations(document, part, member, at));
  };
  if (typeof schema['$ref'] === 'string') inner(resolve(document, schema['$ref']), value);
  const object = isJsonObject(value) ? value : undefined;
  const properties = isJsonObject(schema['properties']) ? schema['properties'] : {};
  for (const [keyword, rule] of Object.entries(schema)) {
    if (annotations.has(keyword) || keyword.startsWith('x-')) continue;
    if (keyword === 'type') check([rule].flat().some((type) => hasType(String(type), value)), keyword);
    else if (keyword === 'properties') {
      for (const [name, member] of Object.entries(object ?? {})) {
        if (Object.hasOwn(properties, name)) inner(properties[name], member, `${place}/${name}`);
      }
    } else if (keyword === 'required' && Array.isArray(rule)) {
      for (const name of rule) check(object === undefined || Object.hasOwn(object, String(name)), `required ${name}`);
    } else if (keyword === 'additionalProperties' && rule === false) {
      for (const name of Object.keys(object ?? {})) check(Object.hasOwn(properties, name), `no other member: ${name}`);
    } else if (keyword === 'additionalProperties' && isJsonObject(rule)) {
      for (const [name, member] of Object.entries(object ?? {})) {
        if (!Object.hasOwn(properties, name)) inner(rule, member, `${place}/${name}`);
      }
    } else if (keyword === 'items') {
      if (Array.isArray(value)) value.forEach((element, index) => inner(rule, element, `${place}/${index}`));
    } else if ((keyword === 'anyOf' || keyword === 'oneOf') && Array.isArray(rule)) {
      const fitting = rule.filter((part) => findViolations(document, part, value, place).length === 0).length;
      check(keyword === 'anyOf' ? fitting > 0 : fitting === 1, keyword);
    } else if (keyword === 'allOf' && Array.isArray(rule)) rule.forEach((part) => inner(part, value));
    else if (keyword === 'enum' && Array.isArray(rule)) check(rule.some((choice) => choice === value), keyword);
    else if (keyword === 'const') check(rule === value, keyword);
    else if (keyword === 'minimum') check(typeof value !== 'number' || value >= Number(rule), keyword);
    else if (keyword === 'maximum') check(typeof value !== 'number' || value <= Number(rule), keyword);
    else if (keyword === 'minLength') check(typeof value !== 'string' || [...value].length >= Number(rule), keyword);
    else if (keyword === 'maxLength') check(typeof value !== 'string' || [...value].length <= Number(rule), keyword);
    else if (keyword === 'minItems') check(!Array.isArray(value) || value.length >= Number(rule), keyword);
    else if (keyword === 'maxItems') check(!Array.isArray(value) || value.length <= Number(rule), keyword);
    else if (keyword === 'pattern') {
      check(typeof value !== 'string' || new RegExp(String(rule), 'u').test(value), keyword);
    } else throw new Error(`Unknown keyword "${keyword}" at ${place}`);
  }
  return found;
}

/** Resolves a reference within the document. */
export function resolve(document: JsonObject, reference: string): JsonValue | undefined {
  let place: JsonValue | undefined = document;
  for (const part of reference.replace(/^#\//, '').split('/')) {
    const name: string = part.replaceAll('~1', '/').replaceAll('~0', '~');
    place = isJsonObject(place) ? place[name] : undefined;
  }
  return place;
}

function hasType(type: string, value: JsonValue): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isJsonObject(value);
  return typeof value === type;
}

/** The vectors of RFC 7396, Appendix A. */
export const vectors: readonly [target: JsonValue, patch: JsonValue, result: JsonValue][] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [['a', 'b'], ['c', 'd'], ['c', 'd']],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

/** Returns the routes of a server with all features, except the files of the page. */
export async function allRoutes(declarations: readonly CollectionDeclaration[] = [items], options: RouteOptions = {}) {
  const { registration = 'closed', requireIfMatch = false, users = true } = options;
  const auth = users ? 'required' : 'none';
  const app = await openApp({
    ...defaultOptions, ...options, log: silentLog, page: false,
    items: declarations.includes(items),
    collections: declarations.filter((each) => each !== items),
    settings: { ...defaultOptions.settings, registration, requireIfMatch, auth },
  });
  await app.close();
  return app.routes;
}

export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const label = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const helpLine = new RegExp(`^# HELP (${name}) ((?:[^\\\\\\n]|\\\\[\\\\n])+)$`);
const typeLine = new RegExp(`^# TYPE (${name}) (counter|gauge|histogram|summary|untyped)$`);
const sampleLine = new RegExp(
  `^(${name})(?:\\{((?:${label})(?:,${label})*)\\})? ([-+]?(?:\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?|Inf)|NaN)$`,
);

/**
 * Reads Prometheus' text format 0.0.4 and holds it to its rules: every line well-formed, a family's lines together
 * and behind its HELP and TYPE, no sample twice, counters named `_total`, histograms that add up.
 */
export function parseExposition(text: string): ParsedSample[] {
  assert.ok(text.endsWith('\n'), 'the last line must end');
  const samples: ParsedSample[] = [];
  const seen = new Set<string>();
  let family = '';
  let kind = '';
  let helped = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const [help, type, sample] = [helpLine.exec(line), typeLine.exec(line), sampleLine.exec(line)];
    if (help !== null) {
      helped = help[1] ?? '';
      assert.ok(!seen.has(helped), `the family ${helped} stands twice`);
      seen.add(helped);
    } else if (type !== null) {
      [family, kind] = [type[1] ?? '', type[2] ?? ''];
      assert.equal(family, helped);
      if (kind === 'counter') assert.match(family, /_total$/);
    } else {
      assert.ok(sample !== null, `not a line of the format: ${line}`);
      const [, sampleName = '', labelText = '', number = ''] = sample;
      const suffixes = kind === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      assert.ok(suffixes.some((suffix) => sampleName === family + suffix), `${sampleName} is not of ${family}`);
      const key = `${sampleName}{${labelText}}`;
      assert.ok(!seen.has(key), `${key} stands twice`);
      seen.add(key);
      samples.push({ name: sampleName, labels: parseLabels(labelText), value: parseNumber(number) });
    }
  }
  checkHistograms(samples);
  return samples;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [pair] of text.matchAll(new RegExp(label, 'g'))) {
    const at = pair.indexOf('=');
    assert.ok(!(pair.slice(0, at) in labels), `the label ${pair} stands twice`);
    labels[pair.slice(0, at)] = pair.slice(at + 2, -1)
      .replace(/\\(["\\n])/g, (_, character: string) => (character === 'n' ? '\n' : character));
  }
  return labels;
}

function parseNumber(text: string): number {
  return text.endsWith('Inf') ? (text.startsWith('-') ? -Infinity : Infinity) : Number(text);
}

function checkHistograms(samples: readonly ParsedSample[]): void {
  const groups = new Map<string, ParsedSample[]>();
  for (const sample of samples.filter(({ labels }) => 'le' in labels)) {
    const { le: _, ...rest } = sample.labels;
    const key = JSON.stringify([sample.name, rest]);
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  for (const [key, buckets] of groups) {
    const bounds = buckets.map(({ labels }) => parseNumber(labels['le'] ?? ''));
    assert.deepEqual(bounds, [...bounds].sort((a, b) => a - b), `${key}: bounds out of order`);
    assert.equal(bounds.at(-1), Infinity, `${key}: no +Inf`);
    const counts = buckets.map(({ value }) => value);
    assert.deepEqual(counts, [...counts].sort((a, b) => a - b), `${key}: buckets do not add up`);
    const { le: _, ...rest } = buckets[0]?.labels ?? {};
    const total = samples.find(({ name: other, labels }) =>
      other === buckets[0]?.name.replace(/_bucket$/, '_count') && JSON.stringify(labels) === JSON.stringify(rest));
    assert.equal(total?.value, counts.at(-1), `${key}: _count differs from the +Inf bucket`);
  }
}

/** The value of the first sample of this name that has at least these labels. */
export function sampleValue(
  samples: readonly ParsedSample[], name: string, labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = Object.entries(labels);
  const fits = (sample: ParsedSample): boolean => wanted.every(([label, text]) => sample.labels[label] === text);
  return samples.find((sample) => sample.name === name && fits(sample))?.value;
}
