import { listWords } from '../../auth/access.ts';
import { sessionCookie, sessionUserField, takesKeys } from '../../api/authenticate.ts';
import type { Route, RoutedCollection } from '../../api/call.ts';
import { idempotencyKeyPattern } from '../../http/idempotency-key.ts';
import { problems } from '../../base/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { version } from '../../base/version.ts';
import { decidingNames } from '../../collections/permissions.ts';
import { listOperators } from '../../lists/filters.ts';
import { listParameters, sortableNames } from '../../lists/query.ts';
import { splitShape } from '../../schema/field.ts';
import { readableNames, readablePaths } from '../../schema/record.ts';
import { manySchema, objectSchema, resourceSchema } from './json-schema.ts';
import { idSchemas } from './schemas.ts';
import { describe, type DescribedRoute } from './operations.ts';

/**
 * Returns the OpenAPI document (3.1.0, https://spec.openapis.org/oas/v3.1.0) for these routes.
 * Object schemas with a `title` become components of that name. All operations share the problem
 * response.
 */
export function openApi(routes: readonly Route[], basePath: string, dialect?: string): JsonObject {
  const paths: { [path: string]: { [method: string]: JsonValue } } = {};
  const tags = new Set<string>();
  for (const route of describe(routes, dialect)) {
    tags.add(route.tag);
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = operation(route);
  }
  const schemas = new Map<string, JsonValue>();
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cairn',
      version,
      description:
        'Resources over HTTP. Each path that supports GET also supports HEAD, and every path supports OPTIONS. ' +
        'Other methods get 405 with `Allow`. Errors are problem details (RFC 9457) with a stable `code`. ' +
        'Every response has an `X-Request-Id`, which is also in the server log.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath || '/' }],
    tags: Array.from(tags, (name) => ({
      name,
      description: tagWords.get(name) ?? `The data of ${name}.`,
    })),
    paths: hoisted(paths, schemas),
    components: {
      headers: { 'X-Request-Id': requestIdHeader },
      responses: hoisted({ Problem: problemResponse }, schemas),
      schemas: Object.fromEntries(schemas),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'From POST /tokens.',
        },
        apiKey: { type: 'http', scheme: 'bearer', description: 'From POST /keys.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: sessionCookie,
          description: 'Set by POST /login.',
        },
      },
    },
    'x-collections': [...new Set(routes.flatMap(({ of }) => of?.collection ?? []))].map(
      describeCollection,
    ),
    'x-problems': Object.fromEntries(
      kinds.map(([code, [status, title]]) => [code, { status, title }]),
    ),
  };
}

/**
 * Describes a collection for programs that read `x-collections`, such as the page: its declaration
 * as in a file, and these members.
 *
 *   builtIn  `users` or `items`: collections that no file declares
 *   lists    its `parameters`, the operators by field as `filters`, and the names for
 *            `sort`, `fields` and `embed`; single resources have no lists
 */
function describeCollection(collection: RoutedCollection): JsonObject {
  const { name, singular, access, ids, isSingle, isUsers, isBuiltIn, ownerRemoved } = collection;
  const { fields, takesMore, value } = splitShape(collection.fields);
  const { id: _, ...others } = fields;
  const own = Object.entries(others).filter(([, { readOnly }]) => !readOnly);
  const { read, replace, patch } = access;
  const { display, group, hidden } = collection;
  const description = {
    name,
    builtIn: isUsers ? 'users' : isBuiltIn && 'items',
    singular,
    single: isSingle,
    id: ids && { kind: ids, given: true },
    timestamps: others['createdAt']?.readOnly,
    ownerRemoved,
    additional: takesMore,
    display,
    group,
    hidden,
    fields: value === undefined ? Object.fromEntries(own) : undefined,
    value,
    access: isSingle ? { read, replace, patch } : access,
    lists: !isSingle && describeLists(collection),
  };
  const asDeclared = function (this: unknown, member: string, value: unknown) {
    // A declaration file omits false values.
    if (this === description && value === false) return undefined;
    // A reference has the ids of the collection that it refers to.
    const isDerived = member === 'ids' && Object(this).kind === 'reference';
    return isDerived ? undefined : value;
  };
  const plain: JsonValue = JSON.parse(JSON.stringify(description, asDeclared));
  return isJsonObject(plain) ? plain : {};
}

function describeLists(collection: RoutedCollection) {
  const { fields, embeddables } = collection;
  return {
    parameters: listParameters(collection),
    filters: Object.fromEntries(
      readablePaths(fields).map(([path, field]) => [path, listOperators(path, field)]),
    ),
    sort: sortableNames(fields),
    fields: readableNames(fields),
    embed: embeddables.map(({ name }) => name),
  };
}

const tagWords = new Map([
  ['server', 'The server itself: its state, its changes and this document.'],
  ['sign-in', 'Signing in and out: sessions, tokens and keys.'],
]);

const text: JsonObject = { type: 'string' };
const kinds = Object.entries(problems);

const issueSchema = objectSchema('Issue', {
  pointer: {
    ...text,
    description: 'A JSON Pointer (RFC 6901) into the body.',
    examples: ['/price'],
  },
  code: { ...text, examples: ['too_small'] },
  detail: { ...text, examples: ['must be at least 0'] },
});

const problemMembers: JsonObject = {
  type: { ...text, format: 'uri-reference' },
  title: text,
  status: { type: 'integer' },
  detail: { ...text, description: 'The problem with this request.' },
  instance: { ...text, format: 'uri', description: 'The id of this request.' },
  code: {
    ...text,
    enum: kinds.map(([code]) => code),
    description: 'The kind of problem. It never changes.',
  },
  errors: { type: 'array', items: issueSchema, description: 'The problem with each field.' },
};
const problemSchema = objectSchema('Problem', problemMembers, ['errors']);

function operation(route: DescribedRoute): JsonObject {
  const { operationId, summary, tag, access, body, method, conditional } = route;
  const words = listWords(access).join(' or ');
  return {
    operationId,
    summary,
    description: `Access: ${words}.`,
    'x-access': words,
    tags: [tag],
    security: listCredentials(route),
    parameters: describeParameters(route),
    ...(body !== undefined && { requestBody: requestBody(route) }),
    responses: {
      [route.success.status ?? 200]: success(route),
      ...(isCreation(route) && { 201: success(route) }),
      ...(conditional && method === 'GET' && { 304: unchanged(route) }),
      // Linters want a 4xx next to `default`, and some generators cannot read "4XX".
      400: problemReference,
      default: problemReference,
    },
  };
}

/** True if the first request creates a resource that later ones replace. */
const isCreation = ({ of, method }: DescribedRoute): boolean =>
  of?.collection.isSingle === true && method === 'PUT';

function listCredentials(route: DescribedRoute): JsonValue {
  const { access } = route;
  if (access === 'public') return [];
  const session = { session: [] };
  if (access === 'session') return [session];
  const keys = takesKeys(route) ? [{ apiKey: [] }] : [];
  const isOptional = listWords(access).includes('optional');
  return [...(isOptional ? [{}] : []), { bearer: [] }, session, ...keys];
}

function describeParameters(route: DescribedRoute): JsonObject[] {
  const {
    path,
    access,
    parameters = [],
    conditional,
    requireIfMatch = false,
    method,
    success: { headers: shown = [] },
    ids,
    of,
  } = route;
  const keyNotes = of?.collection.isUsers ? `${retries} ${withoutPassword}` : retries;
  const isConditional = conditional === true;
  const header = (name: string, description: string, more: JsonObject = {}): JsonObject => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: text,
    ...more,
  });
  const statusIfSame = method === 'GET' ? 304 : 412;
  const all = [
    path.includes('{id}') && {
      name: 'id',
      in: 'path',
      required: true,
      schema: idSchemas[ids ?? 'made'],
    },
    ...parameters.map(({ name, required, description, schema }) => {
      const commaSeparated = schema['type'] === 'array' && { style: 'form', explode: false };
      return {
        name,
        in: 'query',
        ...(required && { required }),
        description,
        schema,
        ...commaSeparated,
      };
    }),
    isConditional && header('If-None-Match', `If this ETag is current, you get ${statusIfSame}.`),
    isConditional &&
      header('If-Match', 'If this ETag is not current, you get 412.', { required: requireIfMatch }),
    access !== 'public' && header(sessionUserField, sessionUsers),
    shown.includes('Idempotency-Replayed') &&
      header('Idempotency-Key', keyNotes, { schema: { ...text, pattern: idempotencyKeyPattern } }),
    shown.includes('Preference-Applied') &&
      header('Prefer', '`count=exact` is supported (RFC 7240).'),
  ];
  return all.filter(isJsonObject);
}

const sessionUsers =
  'The id of the user that the session cookie should belong to. If it belongs to another user, you get 409.';

const retries =
  'A key of your choice. For 24 hours, the same key and body get the same response again.';
const withoutPassword = 'With a `password` in the body, you get 400.';

function requestBody({ body, titles = [], method, of }: DescribedRoute): JsonObject {
  const { mediaTypes = [], optional = false, shapes = [] } = body ?? {};
  const purpose = method === 'PUT' ? 'replace' : method === 'PATCH' ? 'patch' : 'create';
  const [one = {}, ...others] = shapes.map((shape, index) =>
    resourceSchema(titles[index] ?? '', shape, purpose),
  );
  const every = others.length === 0 ? one : { oneOf: [one, ...others] };
  const schema = of?.operation === 'createMany' ? manySchema(every) : every;
  return {
    required: !optional,
    content: Object.fromEntries(mediaTypes.map((type) => [type, { schema }])),
  };
}

function success(route: DescribedRoute): JsonObject {
  const { status = 200, schema, mediaType = 'application/json', headers = [] } = route.success;
  // A list that depends on the caller has no version; if it embeds, only its pages have one.
  const { operation, collection } = route.of ?? {};
  const dependsOnCaller =
    collection?.hasOwners || (collection && decidingNames(collection.access).length > 0);
  const isList = operation === 'list' && (embeds(route) || dependsOnCaller);
  const described = {
    ...describeHeaders(headers),
    ...(isList && describeHeaders(['ETag'], { required: false })),
  };
  return {
    description: statusWords[status],
    headers: described,
    ...(schema && { content: { [mediaType]: { schema } } }),
  };
}

const statusWords = { 200: 'The result.', 201: 'What was created.', 204: 'Done.' };

/** Has the same version and location as 200. */
function unchanged({ success: { headers = [] } }: DescribedRoute): JsonObject {
  const place = headers.filter((name) => name === 'Content-Location');
  return {
    description: 'You have the current version.',
    headers: describeHeaders(['ETag', ...place]),
  };
}

const embeds = ({ parameters }: DescribedRoute): boolean =>
  parameters?.some(({ name }) => name === 'embed') === true;

const problemHeaders = [
  'WWW-Authenticate',
  'ETag',
  'Accept',
  'Accept-Encoding',
  'Accept-Patch',
  'Allow',
  'Retry-After',
];

const headers: { readonly [name: string]: JsonObject } = {
  ETag: { description: 'The entity tag of the current version (RFC 9110 §8.8.3).', required: true },
  Location: { description: 'The path of the new record.', required: true },
  'Idempotency-Replayed': {
    description: '`true` if an earlier request with this key created the record.',
  },
  Link: {
    description:
      'The next page, `rel="next"`; by `offset` also the `first`, `prev` and `last` one (RFC 8288).',
  },
  'Content-Location': { description: 'The path of the record.', required: true },
  'X-Total-Count': {
    description: 'The number of all records that match the filters, with `Prefer: count=exact`.',
    schema: { type: 'integer', minimum: 0 },
  },
  'Set-Cookie': { description: 'The session cookie `sid`: set, renewed or removed.' },
  'Retry-After': {
    description: 'Seconds to wait before you try again.',
    schema: { type: 'integer', minimum: 0 },
  },
};

/** Always includes the request's id. */
function describeHeaders(names: readonly string[], more: JsonObject = {}): JsonObject {
  return {
    ...Object.fromEntries(names.map((name) => [name, { schema: text, ...headers[name], ...more }])),
    'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
  };
}

const problemReference: JsonObject = { $ref: '#/components/responses/Problem' };

/** Every refusal. Its status follows from its code, as `x-problems` says. */
const problemResponse: JsonObject = {
  description: 'Problem details. The `code` says what is wrong; `x-problems` has its status.',
  headers: describeHeaders(problemHeaders, { required: false }),
  content: { 'application/problem+json': { schema: problemSchema } },
};

const requestIdHeader: JsonObject = {
  description: 'The id of this request, which is also in the server log.',
  required: true,
  schema: text,
};

/** Replaces each titled object schema by a reference to it in `schemas`. */
function hoisted(value: JsonValue, schemas: Map<string, JsonValue>): JsonValue {
  if (Array.isArray(value)) return value.map((element: JsonValue) => hoisted(element, schemas));
  if (!isJsonObject(value)) return value;
  const inner: JsonObject = Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, hoisted(member, schemas)]),
  );
  const { title, type } = inner;
  if (typeof title !== 'string' || type !== 'object') return inner;
  // The `User` of this server replaces the general one.
  if (!schemas.has(title)) schemas.set(title, inner);
  return { $ref: `#/components/schemas/${title}` };
}
