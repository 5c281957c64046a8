import type { Principal } from '../auth/access.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import {
  acceptNew,
  draft,
  validateElements,
  type BodyRules,
  type Draft,
} from '../schema/validate.ts';
import type { Input, Shape } from '../schema/field.ts';
import { manySchema, resourceSchema } from '../schema/json-schema.ts';

/** The body of a route: its description, and its validation to a value of type `T`. */
export interface Body<T> {
  readonly mediaTypes: readonly string[];
  /** Whether it may be absent. It is then `{}`. */
  readonly optional?: boolean;
  /** Returns the JSON Schema, for the OpenAPI document. */
  schema(): JsonObject;
  /** @throws CairnError `validation_failed` with all issues */
  validate(json: JsonValue, principal: Principal): T;
}

const json = ['application/json'];

/** Media types of a merge patch (RFC 7396): its own, and plain JSON. */
export const patchTypes: readonly string[] = ['application/merge-patch+json', 'application/json'];

/** Returns a body that creates a record, or has the parameters of an action. */
export function newRecord<S extends Shape>(title: string, rules: BodyRules<S>): Body<Input<S>> {
  return {
    mediaTypes: json,
    schema: () => resourceSchema(title, rules.shape, 'create'),
    validate: (sent, principal) => acceptNew(rules, sent, principal),
  };
}

/**
 * Returns the bodies of a collection. `title` names its records in the OpenAPI document.
 */
export function bodiesFor<N extends Shape, C extends Shape>(
  title: string,
  newRules: BodyRules<N>,
  changeRules: BodyRules<C>,
): {
  readonly create: Body<Input<N>>;
  readonly replace: Body<Draft<Input<C>>>;
  readonly patch: Body<Draft<Input<C>>>;
} {
  const change = (kind: 'replace' | 'patch', changeTitle: string): Body<Draft<Input<C>>> => ({
    mediaTypes: kind === 'patch' ? patchTypes : json,
    schema: () => resourceSchema(changeTitle, changeRules.shape, kind),
    validate: (sent, principal) => draft(kind, changeRules, sent, principal),
  });
  return {
    create: newRecord(`New${title}`, newRules),
    replace: change('replace', `${title}Replacement`),
    patch: change('patch', `${title}Patch`),
  };
}

/** Returns a body that is an array of bodies `one`. */
export function manyOf<T>(one: Body<T>): Body<readonly T[]> {
  return {
    ...one,
    schema: () => manySchema(one.schema()),
    validate: (sent, principal) =>
      validateElements(sent, (element) => one.validate(element, principal)),
  };
}

/** Returns a body that is one of two: the second one if the member `marker` is sent. */
export function either<A, B>(first: Body<A>, marker: string, second: Body<B>): Body<A | B> {
  return {
    mediaTypes: json,
    schema: () => ({ oneOf: [first.schema(), second.schema()] }),
    validate(sent, principal) {
      const isSecond = isJsonObject(sent) && Object.hasOwn(sent, marker);
      return (isSecond ? second : first).validate(sent, principal);
    },
  };
}
