import type { Principal } from '../auth/access.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { acceptNew, Draft, validateElements, type BodyRules, type Valid } from '../schema/check.ts';
import type { Input, Shape } from '../schema/field.ts';
import { oneOrManySchema, resourceSchema } from '../schema/json-schema.ts';

/** What may be sent to a route: how it is described, and how it becomes a value of type `T`. */
export interface Body<T> {
  readonly mediaTypes: readonly string[];
  /** Whether it may be absent; it is then `{}`. */
  readonly optional?: boolean;
  /** The JSON Schema, for the OpenAPI document. */
  schema(): JsonObject;
  /** @throws CairnError `validation_failed` with every issue */
  validate(json: JsonValue, principal: Principal): T;
}

const json = ['application/json'];

/** Media types of a patch: a merge patch (RFC 7396) by its own name, or as the JSON that it is. */
export const patchTypes: readonly string[] = ['application/merge-patch+json', 'application/json'];

/** A body that stands for itself: it creates a record, or says what to do. */
export function newRecord<S extends Shape>(title: string, rules: BodyRules<S>): Body<Valid<Input<S>>> {
  return {
    mediaTypes: json,
    schema: () => resourceSchema(title, rules.shape, 'create'),
    validate: (sent, principal) => acceptNew(rules, sent, principal),
  };
}

/** A body that changes a record: all of it (PUT), or some fields by a merge patch (PATCH, RFC 7396). */
function change<S extends Shape>(
  kind: 'replace' | 'patch',
  title: string,
  rules: BodyRules<S>,
): Body<Draft<S>> {
  return {
    mediaTypes: kind === 'patch' ? patchTypes : json,
    schema: () => resourceSchema(title, rules.shape, kind),
    validate: (sent, principal) => new Draft(kind, rules, sent, principal),
  };
}

/** The bodies of a collection, whose schemas are named after a record's `title`. */
export function bodiesFor<N extends Shape, C extends Shape>(
  title: string,
  newRules: BodyRules<N>,
  changeRules: BodyRules<C>,
): { create: Body<Valid<Input<N>>>; replace: Body<Draft<C>>; patch: Body<Draft<C>> } {
  return {
    create: newRecord(`New${title}`, newRules),
    replace: change('replace', `${title}Replacement`, changeRules),
    patch: change('patch', `${title}Patch`, changeRules),
  };
}

/** A body, or an array of such bodies. */
export function oneOrMany<T extends object>(one: Body<T>): Body<T | T[]> {
  return {
    ...one,
    schema: () => oneOrManySchema(one.schema()),
    validate(sent, principal) {
      if (!Array.isArray(sent)) return one.validate(sent, principal);
      return validateElements(sent, (element) => one.validate(element, principal));
    },
  };
}

/** One of two bodies: the second one where the member `marker` is sent. */
export function either<A, B>(first: Body<A>, marker: string, second: Body<B>): Body<A | B> {
  return {
    mediaTypes: json,
    schema: () => ({ oneOf: [first.schema(), second.schema()] }),
    validate(sent, principal) {
      const isSecond = isJsonObject(sent) && Object.hasOwn(sent, marker);
      return isSecond ? second.validate(sent, principal) : first.validate(sent, principal);
    },
  };
}
