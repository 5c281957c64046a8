import type { Principal } from '../auth/access.ts';
import { isJsonObject, type JsonValue } from '../base/json.ts';
import {
  creation,
  draft,
  validateBody,
  validateElements,
  validationFailed,
  type BodyRules,
  type Draft,
} from '../schema/validate.ts';
import type { CompleteInput, Shape } from '../schema/field.ts';

export interface Body<T> {
  readonly mediaTypes: readonly string[];
  /** True if it may be absent, which counts as `{}`. */
  readonly optional?: boolean;
  /** Its maximum size without a shared place. Default: `limits.bodyBytesMax`. */
  readonly bytesMax?: number;
  /** Parses it. Default: JSON within `limits`. @throws CairnError */
  readonly parse?: (sent: Buffer) => Promise<JsonValue>;
  /** True if any media type is accepted, and handlers get the body as sent. */
  readonly isRaw?: true;
  readonly shapes: readonly Shape[];
  /** @throws CairnError `validation_failed` with all issues */
  validate(json: JsonValue, principal: Principal): T;
}

const json = ['application/json'];

/** Media types of a merge patch (RFC 7396): its own, and plain JSON. */
export const patchTypes: readonly string[] = ['application/merge-patch+json', 'application/json'];

export function newRecord<S extends Shape>(rules: BodyRules<S>): Body<CompleteInput<S>> {
  return {
    mediaTypes: json,
    shapes: [rules.shape],
    validate: (sent, principal) => validateBody(rules, sent, creation, principal),
  };
}

export const rawBody: Body<undefined> = {
  mediaTypes: ['*/*'],
  isRaw: true,
  shapes: [],
  validate: () => undefined,
};

export function bodiesFor<N extends Shape, C extends Shape>(
  newRules: BodyRules<N>,
  changeRules: BodyRules<C>,
): {
  readonly create: Body<CompleteInput<N>>;
  readonly replace: Body<Draft<CompleteInput<C>>>;
  readonly patch: Body<Draft<CompleteInput<C>>>;
} {
  const change = (kind: 'replace' | 'patch'): Body<Draft<CompleteInput<C>>> => ({
    mediaTypes: kind === 'patch' ? patchTypes : json,
    shapes: [changeRules.shape],
    validate: (sent, principal) => draft(kind, changeRules, sent, principal),
  });
  return {
    create: newRecord(newRules),
    replace: change('replace'),
    patch: change('patch'),
  };
}

export function arrayBody<T>(one: Body<T>): Body<readonly T[]> {
  return {
    mediaTypes: one.mediaTypes,
    ...(one.parse && { parse: one.parse, bytesMax: one.bytesMax }),
    shapes: one.shapes,
    validate: (sent, principal) =>
      validateElements(sent, (element) => one.validate(element, principal)),
  };
}

/** Refuses arrays, which belong to the path `batch`. */
export function objectBody<T>(body: Body<T>, batch: string): Body<T> {
  return {
    ...body,
    validate(sent, principal) {
      if (!Array.isArray(sent)) return body.validate(sent, principal);
      const detail = `must be an object; post an array of them to ${batch}`;
      throw validationFailed([{ pointer: '', code: 'wrong_type', detail }]);
    },
  };
}

/** Returns a body of one of two kinds: the second if the member `marker` is sent. */
export function either<A, B>(first: Body<A>, marker: string, second: Body<B>): Body<A | B> {
  return {
    mediaTypes: json,
    shapes: [...first.shapes, ...second.shapes],
    validate(sent, principal) {
      const isSecond = isJsonObject(sent) && Object.hasOwn(sent, marker);
      return (isSecond ? second : first).validate(sent, principal);
    },
  };
}
