import { CairnError, invariant, type Issue } from '../base/errors.ts';
import { isJsonObject, isScalar, mergePatch, pointerTo } from '../base/json.ts';
import type { JsonObject, JsonValue, Scalar } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import type { Field, Input, Shape } from './field.ts';
import { readableFields, representationOf } from './representation.ts';
import { ruleViolation } from './rules.ts';

/**
 * The use of a body: it creates a record, is the whole of the record `stored` (PUT), or is a merge patch for it (PATCH,
 * RFC 7396). Only those members of `stored` that the shape shows are part of the resource.
 */
export type Mode = { readonly kind: 'create' } | { readonly kind: 'replace' | 'patch'; readonly stored: object };

declare const valid: unique symbol;
/** A value that was checked. Only this module makes one, so what asks for it cannot be given anything unchecked. */
export type Valid<T> = T & { readonly [valid]: true };

/** The most issues in one answer: more than a person reads. It bounds the answer to a hostile body. */
const issuesMax = 100;

/**
 * Returns the complete writable part of the resource that `body` makes, as `shape` types it: defaults are filled in, a
 * patch is merged, an optional field that is absent is left out, and -0 is 0. A value that is stored already passes
 * without a look at its rule, which may be newer. `furtherIssues` finds issues beyond the rules of the shape; one for a
 * field that has an issue already is dropped.
 * @throws CairnError `validation_failed` with every issue
 */
export function validateBody<S extends Shape>(
  shape: S,
  body: JsonValue,
  mode: Mode,
  furtherIssues: (body: JsonObject) => readonly Issue[] = () => [],
): Valid<Input<S>> {
  const stored = mode.kind === 'create' ? {} : representationOf(shape, mode.stored);
  const document = mode.kind === 'patch' ? mergePatch(stored, body) : body;
  if (!isJsonObject(document) || !isJsonObject(body)) {
    throw validationFailed([{ pointer: '', code: 'wrong_type', detail: 'must be an object' }]);
  }
  const issues: Issue[] = [];
  const value: { [name: string]: Scalar } = {};
  const report = (name: string, code: string, detail: string): void => {
    issues.push({ pointer: pointerTo(name), code, detail });
  };
  // These loops are on the way of every write; `Object.entries` would triple their time.
  for (const name in shape) {
    const field: Field | undefined = shape[name];
    if (field === undefined) continue;
    const before = mode.kind === 'create' ? field.fallback : member(stored, name);
    // A write-only field is no part of the stored resource, so null in a patch cannot remove it.
    const sent = member(field.access === 'write-only' ? body : document, name);
    if (field.access === 'read-only') {
      if (Object.hasOwn(body, name) && sent !== before) report(name, 'read_only', 'must be left as it is');
      continue;
    }
    // An absent field keeps its value if it has a default; in a patch, absence means removal.
    const isKept = sent === undefined && field.presence === 'defaulted' && mode.kind !== 'patch';
    const next = isKept ? before : sent;
    const violation = next === before || next === undefined ? undefined : ruleViolation(field.rule, next);
    if (violation !== undefined) report(name, violation.code, violation.detail);
    else if (isScalar(next)) value[name] = Object.is(next, -0) ? 0 : next;
    else if (field.presence !== 'optional') report(name, 'required', 'must be given');
  }
  for (const name in body) {
    if (!Object.hasOwn(shape, name)) report(name, 'unknown_field', 'must be left out: there is no such field');
  }
  issues.push(...furtherIssues(body).filter(({ pointer }) => issues.every((issue) => issue.pointer !== pointer)));
  if (issues.length > 0) throw validationFailed(issues);
  invariant(isComplete(shape, value), 'a body without issues has all the fields it needs');
  return value;
}

function isComplete<S extends Shape>(shape: S, value: object): value is Valid<Input<S>> {
  for (const name in shape) {
    const { access, presence } = shape[name] ?? {};
    if (access !== 'read-only' && presence !== 'optional' && !Object.hasOwn(value, name)) return false;
  }
  return true;
}

/** The error for a body with these issues. */
export function validationFailed(issues: readonly Issue[]): CairnError {
  const fields = issues.length === 1 ? '1 field breaks a rule' : `${issues.length} fields break a rule`;
  const shown = issues.slice(0, issuesMax);
  return new CairnError('validation_failed', `Cannot accept the body: ${fields}`, { issues: shown });
}

/**
 * Returns what `validate` makes of each element of a body.
 * @throws CairnError `validation_failed` with the issues of all elements, also for none and for more than
 *   `limits.elementsMax`
 */
export function validateElements<T>(body: readonly JsonValue[], validate: (element: JsonValue) => T): T[] {
  if (body.length === 0 || body.length > limits.elementsMax) {
    const detail = `must have 1 to ${limits.elementsMax} elements`;
    throw validationFailed([{ pointer: '', code: body.length === 0 ? 'too_short' : 'too_long', detail }]);
  }
  const issues: Issue[] = [];
  const values: T[] = [];
  for (const [index, element] of body.entries()) {
    try {
      values.push(atElement(index, () => validate(element)));
    } catch (error) {
      if (!(error instanceof CairnError) || error.issues === undefined) throw error;
      issues.push(...error.issues);
    }
    if (issues.length > issuesMax) break;
  }
  if (issues.length > 0) throw validationFailed(issues);
  return values;
}

/** Does `work` for one element of a body: the pointers of what it throws lead through the element. */
export function atElement<T>(index: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof CairnError) || error.issues === undefined) throw error;
    const issues = error.issues.map((issue) => ({ ...issue, pointer: `/${index}${issue.pointer}` }));
    throw new CairnError(error.code, error.message, { issues, cause: error.cause });
  }
}

/**
 * Returns a check of records that were read from a file. The check returns the problem of a record that does not fit
 * `shape`, worded to follow the record's name, and `undefined` for one that fits. It looks at types and not at rules,
 * which may have been others when the record was written, and fills in a `defaulted` field that the record lacks.
 */
export function storedRecordCheck(shape: Shape): (record: JsonObject) => string | undefined {
  const fields = readableFields(shape);
  return (record) => {
    // Every start runs this for every record. An inherited member is never a scalar, so its type tells it apart.
    for (const [name, field] of fields) {
      if (hasType(field, record[name])) continue;
      if (Object.hasOwn(record, name)) return `has a "${name}" that is no ${field.rule.kind}: mend it by hand`;
      if (field.presence === 'required') return `has no "${name}": a field that is added is optional or defaulted`;
      if (field.fallback !== undefined) Object.assign(record, { [name]: field.fallback });
    }
    return undefined;
  };
}

const member = (object: JsonObject, name: string): JsonValue | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

function hasType({ rule, example }: Field, value: unknown): boolean {
  if (typeof value === 'number' && !Number.isFinite(value)) return false;
  return typeof value === typeof example && (rule.kind !== 'choice' || rule.values.some((one) => one === value));
}
