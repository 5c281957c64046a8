import type { Access } from '../auth/access.ts';
import type { ErrorCode } from '../base/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { objectSchema, resourceSchema } from '../schema/json-schema.ts';
import { sessionCookie } from './authenticate.ts';
import { problems } from './problems.ts';
import { mediaTypesOf, problemsOf, type Route, type RouteBody } from './route.ts';

/**
 * The OpenAPI document (3.1.0, https://spec.openapis.org/oas/v3.1.0), made of nothing but the route table. A schema
 * with a `title` becomes a component of that name.
 */
export function openApi(routes: ReadonlyMap<string, Route>, version: string): JsonObject {
  const schemas = new Map<string, JsonObject>();
  const responses = new Map(codes.map((code) => [String(code), problemResponse([code])]));
  const paths: { [path: string]: { [method: string]: JsonValue } } = {};
  for (const [operationId, route] of routes) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = hoisted(operation(operationId, route, responses), schemas);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cairn',
      version,
      description:
        'Resources over HTTP. HEAD is there wherever GET is, and OPTIONS on every path; another method is answered ' +
        'with 405 and `Allow`. What goes wrong is told as problem details (RFC 9457).',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [...new Map(Object.keys(paths).map((path) => [tagOf(path).name, tagOf(path)])).values()],
    paths,
    components: {
      schemas: Object.fromEntries([...schemas, ['Issue', issueSchema], ['Problem', problemSchema]]),
      responses: Object.fromEntries(responses),
      examples: Object.fromEntries(codes.map((code) => [code, { value: problemExample(code) }])),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'From POST /tokens.' },
        session: { type: 'apiKey', in: 'cookie', name: sessionCookie, description: 'Set by POST /login.' },
      },
    },
  };
}

const codes = Object.keys(problems).filter((code): code is ErrorCode => Object.hasOwn(problems, code));

const text: JsonObject = { type: 'string' };

const issueSchema: JsonObject = {
  ...objectSchema('Issue', {
    pointer: { type: 'string', description: 'A JSON Pointer (RFC 6901) into the body.', examples: ['/price'] },
    code: { type: 'string', examples: ['too_small'] },
    detail: { type: 'string', examples: ['must be at least 0'] },
  }),
  description: 'What is wrong with one field.',
};

const problemMembers: { readonly [name: string]: JsonObject } = {
  type: { type: 'string', format: 'uri-reference', description: 'Where this kind of problem is described.' },
  title: text,
  status: { type: 'integer' },
  detail: { type: 'string', description: 'What is wrong with this very request.' },
  instance: { type: 'string', format: 'uri', description: 'The id of the request.' },
  code: { type: 'string', enum: codes, description: 'Stable; the last part of `type`.' },
  errors: { type: 'array', items: { $ref: '#/components/schemas/Issue' } },
};

const problemSchema: JsonObject = {
  ...objectSchema('Problem', problemMembers, ['errors']),
  description: 'Problem details (RFC 9457).',
};

const signInPaths = ['login', 'logout', 'tokens', 'sessions', 'dashboard'];
const serverPaths = ['livez', 'readyz', 'openapi.json'];

/** Paths that are not a collection's stand together. */
function tagOf(path: string): { readonly name: string; readonly description: string } {
  const [, segment = ''] = path.split('/');
  if (signInPaths.includes(segment)) return { name: 'sign-in', description: 'Sessions by cookie and by tokens.' };
  if (serverPaths.includes(segment)) return { name: 'server', description: 'About the server itself.' };
  return { name: segment, description: `The collection of ${segment}.` };
}

function operation(operationId: string, route: Route, responses: Map<string, JsonObject>): JsonObject {
  const parameters = parametersOf(route);
  return {
    operationId,
    summary: route.summary,
    description: `For ${allowed[route.access]}.`,
    tags: [tagOf(route.path).name],
    security: securityOf(route.access),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body !== undefined && { requestBody: requestBody(route.body) }),
    responses: {
      ...successes(route),
      ...refusals(route, responses),
    },
  };
}

const allowed: { readonly [access in Access]: string } = {
  public: 'everybody; credentials are not looked at',
  optional: 'everybody, with credentials or without',
  user: 'whoever is signed in',
  admin: 'administrators',
  self: 'the user of this id and administrators; to all others there is none',
  owner: 'who created it and administrators',
  session: 'whoever is signed in by the session cookie',
};

/** What a route takes as credentials; nothing where it looks at none. */
function securityOf(access: Access): JsonValue {
  if (access === 'public') return [];
  const session = { session: [] };
  if (access === 'session') return [session];
  return access === 'optional' ? [{}, { bearer: [] }, session] : [{ bearer: [] }, session];
}

function parametersOf({ path, query = [], conditional, requireIfMatch = false, method, prefer }: Route): JsonObject[] {
  const parameters: JsonObject[] = query.map(({ name, description, schema }) => {
    const commaSeparated = schema['type'] === 'array' && { style: 'form', explode: false };
    return { name, in: 'query', description, schema, ...commaSeparated };
  });
  if (path.includes('{id}')) {
    const schema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER };
    parameters.unshift({ name: 'id', in: 'path', required: true, schema, example: 1 });
  }
  if (conditional === true) {
    const otherwise = method === 'GET' ? 'Answer 304 if it is this.' : 'Go on only if it is not this; else 412.';
    const ifMatch = fieldParameter('If-Match', 'Go on only if it is this; else 412.');
    parameters.push(fieldParameter('If-None-Match', otherwise), { ...ifMatch, required: requireIfMatch });
  }
  if (prefer !== undefined) parameters.push(fieldParameter('Prefer', `Known is \`${prefer}\` (RFC 7240).`));
  return parameters;
}

function fieldParameter(name: string, description: string): JsonObject {
  return { name, in: 'header', description, schema: text };
}

function requestBody(body: RouteBody): JsonObject {
  const { title, shape, purpose, or, optional = false } = body;
  const own = resourceSchema(title, shape, purpose);
  const schema = or === undefined ? own : { oneOf: [own, resourceSchema(or.title, or.shape, purpose)] };
  const sent = Object.entries(shape).filter(([, field]) => field.access !== 'read-only');
  const shown = purpose === 'patch' ? sent.slice(0, 1) : sent;
  const media = { schema, example: Object.fromEntries(shown.map(([name, field]) => [name, field.example])) };
  return { required: !optional, content: Object.fromEntries(mediaTypesOf(body).map((type) => [type, media])) };
}

/** A success, what a preference or a condition makes of it, and where a browser is sent instead. */
function successes({ reply, method, conditional = false, prefer, signInAt }: Route): JsonObject {
  const { status, schema, headers: names = [] } = reply;
  const own = headersOf([...names, ...(prefer === undefined ? [] : ['Preference-Applied'])]);
  const headers = { ...own, ...(signInAt !== undefined && pageHeaders) };
  const content: JsonObject | undefined = schema && {
    'application/json': { schema, example: exampleOf(schema) },
    ...(signInAt !== undefined && { 'text/html': { schema: text } }),
  };
  const done = status === 201 && prefer !== undefined ? 'It is done; if so preferred, without content.' : 'It is done.';
  const described = { description: method === 'GET' ? 'What was asked for.' : done, headers };
  return {
    [status]: { ...described, ...(content !== undefined && { content }) },
    ...(prefer === 'return=minimal' && status === 200 && { 204: described }),
    ...(signInAt !== undefined && { 303: { description: 'Sign in there.', headers: headersOf(['Location']) } }),
    ...(((conditional && method === 'GET') || signInAt !== undefined) && {
      304: { description: 'It is as before.', headers: signInAt === undefined ? headersOf(['ETag']) : pageHeaders },
    }),
  };
}

/** The problems of a route: for each status a reference to what describes them in `responses`, together. */
function refusals(route: Route, responses: Map<string, JsonObject>): JsonObject {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of problemsOf(route)) {
    const { status } = problems[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const references = [...byStatus].map(([status, kinds]): [number, JsonObject] => {
    const name = kinds.join('.');
    responses.set(name, problemResponse(kinds));
    return [status, { $ref: `#/components/responses/${name}` }];
  });
  return Object.fromEntries(references);
}

function problemResponse(kinds: readonly ErrorCode[]): JsonObject {
  const [status = 0] = kinds.map((code) => problems[code].status);
  const names = [
    ...(status === 401 || kinds.includes('insufficient_scope') ? ['WWW-Authenticate'] : []),
    ...(status === 415 ? ['Accept', 'Accept-Encoding', 'Accept-Patch'] : []),
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
  ];
  const each = kinds.map((code) => ({
    type: 'object',
    properties: { code: { const: code }, status: { const: status } },
    ...(code === 'validation_failed' && { required: ['errors'] }),
  }));
  const narrowed = each.length === 1 ? (each[0] ?? {}) : { anyOf: each };
  const examples = kinds.map((code): [string, JsonObject] => [code, { $ref: `#/components/examples/${code}` }]);
  return {
    description: kinds.map((code) => problems[code].title).join('; '),
    ...(names.length > 0 && { headers: headersOf(names) }),
    content: {
      'application/problem+json': {
        schema: { allOf: [{ $ref: '#/components/schemas/Problem' }, narrowed] },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function problemExample(code: ErrorCode): JsonObject {
  const { status, title } = problems[code];
  return {
    type: `/openapi.json#/components/responses/${code}`,
    title,
    status,
    detail: 'Cannot do this: it says here what is wrong',
    instance: 'urn:uuid:0190163d-8694-739b-aea5-966c26f8ad90',
    code,
    ...(code === 'validation_failed' && { errors: [exampleOf(issueSchema)] }),
  };
}

const headerSchemas: { readonly [name: string]: JsonObject } = {
  ETag: { description: 'The entity tag (RFC 9110 §8.8.3).', required: true, schema: text },
  Location: { description: 'Where the resource is.', required: true, schema: text },
  Link: { description: 'The next page, if there is one: `rel="next"` (RFC 8288).', schema: text },
  'X-Total-Count': { description: 'With `Prefer: count=exact`.', schema: { type: 'integer', minimum: 0 } },
  'Preference-Applied': { description: 'Which preference was followed (RFC 7240 §3).', schema: text },
  'Set-Cookie': { description: 'The session cookie `sid`, set, renewed or cleared.', schema: text },
  'WWW-Authenticate': { description: 'The challenge (RFC 6750 §3).', schema: text },
  'Retry-After': { description: 'Seconds after which it may go better.', schema: { type: 'integer', minimum: 0 } },
};

/** What a page has that a browser is answered with. */
const pageHeaders: JsonObject = {
  ...headersOf(['Referrer-Policy', 'Cross-Origin-Opener-Policy']),
  ETag: { description: 'Of the page.', schema: text },
};

function headersOf(names: readonly string[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, headerSchemas[name] ?? { schema: text }]));
}

/** `value` with every schema that has a title taken out into `schemas`, a reference in its place. */
function hoisted(value: JsonValue, schemas: Map<string, JsonObject>): JsonValue {
  if (Array.isArray(value)) return value.map((element: JsonValue) => hoisted(element, schemas));
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, JsonValue] => [name, hoisted(member, schemas)]);
  const inner: JsonObject = Object.fromEntries(members);
  const { title, type } = inner;
  if (typeof title !== 'string' || type !== 'object') return inner;
  schemas.set(title, inner);
  return { $ref: `#/components/schemas/${title}` };
}

/** What a value of this schema looks like. */
function exampleOf(schema: JsonValue): JsonValue {
  if (!isJsonObject(schema)) return null;
  const { examples, const: constant, anyOf, properties, items, type, minimum = 1, format } = schema;
  if (Array.isArray(examples)) return examples[0] ?? null;
  if (constant !== undefined) return constant;
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0] ?? null);
  if (isJsonObject(properties)) {
    return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, exampleOf(property)]));
  }
  if (items !== undefined) return [exampleOf(items)];
  if (format === 'date-time') return '2026-01-31T12:00:00.000Z';
  return type === 'integer' ? minimum : '…';
}
