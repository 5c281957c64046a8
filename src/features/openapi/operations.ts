import type { ContentTitle, Operation, Route, RoutedCollection, Success } from '../../api/call.ts';
import type { JsonObject } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { capitalized } from '../../collections/registry.ts';
import { fieldSchema, isRequired, manySchema, resourceSchema } from './json-schema.ts';
import { describeList, describeRecord, type QueryParameter } from './parameters.ts';
import { contentSchemas, userSchema } from './schemas.ts';

interface Description {
  readonly tag: string;
  readonly summary: string;
  readonly titles?: readonly string[];
  readonly parameters?: readonly QueryParameter[];
  readonly success: Omit<Success, 'content'> & { readonly schema?: JsonObject | undefined };
}

export interface DescribedRoute extends Omit<Route, keyof Description>, Description {
  readonly operationId: string;
}

/** Omits routes without an operation id. */
export function describe(routes: readonly Route[], dialect?: string): DescribedRoute[] {
  const contents = contentSchemas(routes.some(({ of }) => of?.collection.isBuiltIn));
  return routes.flatMap((route) => {
    const { operationId, of } = route;
    if (operationId === undefined) return [];
    if (of === undefined)
      return [{ ...route, operationId, ...describeRow(route, operationId, contents) }];
    const { collection, operation } = of;
    const description = operations[operation](collection);
    const isShown = operation === 'remove' && dialect !== undefined;
    const success = isShown ? { schema: { type: 'object' } } : description.success;
    return [{ ...route, operationId, tag: collection.name, ...description, success }];
  });
}

function describeRow(
  { summary = '', tag = 'sign-in', titles, query, success = {} }: Route,
  operationId: string,
  contents: { readonly [title in ContentTitle]: JsonObject },
): Description {
  const { content, ...others } = success;
  const title = capitalized(operationId);
  const schema =
    typeof content === 'string'
      ? contents[content]
      : content && resourceSchema(`${title}Reply`, content);
  return {
    tag,
    summary,
    titles: titles ?? [`${title}Body`],
    parameters: Object.entries(typeof query === 'object' ? query : {}).map(([name, field]) => ({
      name,
      required: isRequired(field, 'create'),
      description: field.description ?? '',
      schema: fieldSchema(field, 'create'),
    })),
    success: { ...others, schema: success.status === 204 ? undefined : (schema ?? {}) },
  };
}

const listHeaders = ['ETag', 'Link', 'X-Total-Count', 'Preference-Applied'];
const newHeaders = ['ETag', 'Location', 'Idempotency-Replayed'];

// prettier-ignore
const operations: {
  readonly [operation in Operation]: (of: RoutedCollection) => Omit<Description, 'tag'>;
} = {
  list: (of) => ({
    summary: `List ${of.name}`,
    parameters: describeList(of),
    success: { schema: { type: 'array', items: readSchema(of) }, headers: listHeaders },
  }),
  create: (of) => ({
    summary: `Create a new ${of.singular}`,
    titles: [`New${capitalized(of.singular)}`],
    success: { status: 201, schema: recordSchema(of), headers: newHeaders },
  }),
  createMany: (of) => ({
    summary: `Create many ${of.name} at once, all or none`,
    titles: [`New${capitalized(of.singular)}`],
    success: { status: 201, schema: manySchema(recordSchema(of)), headers: ['Idempotency-Replayed'] },
  }),
  read: (of) => ({
    summary: `Read the ${describeOne(of)}`,
    parameters: of.isSingle ? [] : describeRecord(of),
    success: { schema: readSchema(of), headers: ['ETag'] },
  }),
  replace: (of) => ({
    summary: `Replace the ${describeOne(of)}`,
    titles: [`${capitalized(of.singular)}Replacement`],
    success: changed(of),
  }),
  patch: (of) => ({
    summary: `Change some fields of the ${describeOne(of)}`,
    titles: [`${capitalized(of.singular)}Patch`],
    success: changed(of),
  }),
  remove: (of) => ({ summary: `Remove the ${of.singular} with this id`, success: { status: 204 } }),
};

/** Changing a user may end the caller's session, and begin another. */
const changed = (of: RoutedCollection): Description['success'] => ({
  schema: recordSchema(of),
  headers: ['ETag', ...(of.isUsers ? ['Set-Cookie'] : [])],
});

const describeOne = ({ name, singular, isSingle }: RoutedCollection): string =>
  isSingle ? name : `${singular} with this id`;

type Described = Pick<RoutedCollection, 'singular' | 'fields' | 'display' | 'isUsers'>;

/** Includes its display name and embedded records. */
const recordSchema = (
  { singular, fields, display, isUsers }: Described,
  title = capitalized(singular),
  embedded: JsonObject = {},
): JsonObject => ({
  ...(isUsers ? userSchema : resourceSchema(title, fields, 'representation', embedded)),
  ...(display !== undefined && { 'x-display': display }),
});

/** Includes embedded records. */
function readSchema(collection: RoutedCollection): JsonObject {
  const { singular, embeddables } = collection;
  const title = capitalized(singular) + (embeddables.length > 0 ? 'WithEmbedded' : '');
  const members = embeddables.map(({ member, of, kind }) => {
    const record = of.isUsers ? resourceSchema('UserName', of.fields) : recordSchema(of);
    const many = { type: 'array', items: record, maxItems: limits.embeddedMax };
    return [member, kind === 'one' ? record : many];
  });
  return recordSchema(collection, title, Object.fromEntries(members));
}
