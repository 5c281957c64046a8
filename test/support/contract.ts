import assert from 'node:assert/strict';
import { isJsonObject, parseJson, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { resolve, violations } from './json-schema.ts';

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
export function checkAnswer(document: JsonObject, asked: Asked, answer: Answered): void {
  const [path = '', query = ''] = asked.target.split('?');
  const item = pathItem(document, path);
  const method = asked.method === 'HEAD' ? 'get' : asked.method.toLowerCase();
  const operation = item?.[method];
  const at = `${asked.method} ${path} → ${answer.status}`;
  if (!isJsonObject(operation)) {
    // Another path or method is no operation: OPTIONS is answered with fields alone, the page is no API.
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
  const found = violations(document, media['schema'], isJson ? parseJson(body) : body);
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
  return violations(document, { $ref: '#/components/schemas/Problem' }, problem);
}
