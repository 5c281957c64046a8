import { CairnError, type Issue } from '../base/errors.ts';
import { isJsonObject, pointerTo, type JsonObject, type JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import {
  anyJson,
  moreName,
  oncePerShape,
  valueName,
  type Field,
  type CompleteInput,
  type Shape,
} from './field.ts';
import { required, unknownField, findViolations, type Placed } from './kinds.ts';
import { fieldValue, isSameValue, toRepresentation } from './record.ts';
import type { KeepUnsettable, Sender } from './setters.ts';

export interface BodyRules<S extends Shape> {
  readonly shape: S;
  /** Keeps the values of fields that the sender may not set. If absent, everyone may set all. */
  readonly keepUnsettable?: KeepUnsettable | undefined;
  /**
   * Finds issues beyond the rules of fields. `stored` is the current record, or an empty object for
   * a new one.
   */
  readonly furtherIssues?: (sent: JsonObject, stored: object, sender: Sender) => readonly Issue[];
}

/**
 * The effect of a body: it creates a record, replaces `stored` (PUT), or patches it (PATCH, RFC
 * 7396). Only members of `stored` in the shape are part of the resource.
 */
export interface Mode {
  readonly kind: 'create' | 'replace' | 'patch';
  readonly stored: object;
}

export const creation: Mode = { kind: 'create', stored: {} };

/**
 * A body that replaces (PUT) or patches (PATCH) a record. Only `against` returns its content,
 * validated with the stored record inside the transaction, once 404 and 428 are ruled out. A
 * read-only field is accepted if unchanged, and a patch is validated by its result.
 */
export interface Draft<T> {
  readonly kind: 'replace' | 'patch';
  /**
   * Returns the writable fields after the change to `stored`.
   * @throws CairnError `validation_failed` with every issue
   */
  readonly against: (stored: object) => T;
}

export function draft<S extends Shape>(
  kind: 'replace' | 'patch',
  rules: BodyRules<S>,
  body: JsonValue,
  sender: Sender,
): Draft<CompleteInput<S>> {
  return { kind, against: (stored) => validateBody(rules, body, { kind, stored }, sender) };
}

/** Runs `work`, and changes the pointers of issues in its errors. */
function pointing<T>(change: (pointer: string) => string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof CairnError) || error.issues === undefined) throw error;
    const { code, message, cause } = error;
    const issues = error.issues.map((issue) => ({ ...issue, pointer: change(issue.pointer) }));
    throw new CairnError(code, message, { issues, cause });
  }
}

/**
 * True if there are more issues than anyone reads. The check ends there, so that a hostile body
 * cannot prolong it.
 */
export const isTooMany = (issues: readonly Issue[]): boolean => issues.length > limits.issuesMax;

/**
 * Returns all writable fields after the change that `body` makes. Defaults are filled in, a patch
 * is merged, absent optional fields are left out, and -0 becomes 0. A value equal to the stored one
 * is not checked again, because its rule may be newer. Further issues of a field that has one are
 * left out.
 * @throws CairnError `validation_failed` with every issue
 */
export function validateBody<S extends Shape>(
  rules: BodyRules<S>,
  body: JsonValue,
  mode: Mode,
  sender: Sender,
): CompleteInput<S> {
  if (!Object.hasOwn(rules.shape, valueName)) return validateMembers(rules, body, mode, sender);
  const withoutName = (pointer: string): string => pointer.slice(pointerTo(valueName).length);
  const sent = { [valueName]: body };
  return pointing(withoutName, () => validateMembers(rules, sent, mode, sender));
}

function validateMembers<S extends Shape>(
  { shape, keepUnsettable, furtherIssues }: BodyRules<S>,
  body: JsonValue,
  mode: Mode,
  sender: Sender,
): CompleteInput<S> {
  const { kind } = mode;
  const stored = kind === 'create' ? collectDefaults(shape) : toRepresentation(shape, mode.stored);
  const sentDocument = kind === 'patch' ? mergePatch(shape, stored, body) : body;
  if (!isJsonObject(sentDocument) || !isJsonObject(body)) {
    throw validationFailed([{ pointer: '', code: 'wrong_type', detail: 'must be an object' }]);
  }
  const issues: Issue[] = [];
  let document = sentDocument;
  if (keepUnsettable !== undefined) {
    const detail = 'must not be changed by this caller';
    const refuse = (pointer: string) => void issues.push({ pointer, code: 'read_only', detail });
    const ownerId = kind === 'create' ? sender.userId : Number(fieldValue(mode.stored, 'ownerId'));
    document = keepUnsettable(shape, stored, document, { kind, sender, ownerId, refuse });
  }
  const value: { [name: string]: JsonValue } = {};
  const sent: SentBody = { kind, body, document, stored };
  // Every write runs these loops; `Object.entries` would make them three times as slow.
  for (const name in shape) {
    const field: Field | undefined = shape[name];
    if (field === undefined || name === moreName) continue;
    const next = nextValue(field, name, sent, issues);
    if (next !== undefined) value[name] = next;
  }
  const more = additionalMembers(shape, sent, issues);
  if (more.length > 0) value[moreName] = Object.fromEntries(more);
  const further = furtherIssues?.(body, mode.stored, sender) ?? [];
  issues.push(
    ...further.filter(({ pointer }) => issues.every((issue) => issue.pointer !== pointer)),
  );
  if (issues.length > 0) throw validationFailed(issues);
  // Without issues, all fields are present and of their type.
  return value as CompleteInput<S>;
}

interface SentBody {
  readonly kind: Mode['kind'];
  readonly body: JsonObject;
  /** The whole resource after the change, with a patch merged. */
  readonly document: JsonObject;
  /** The stored record as callers see it, or the defaults of a new one. */
  readonly stored: JsonObject;
}

/** Returns a field's value after the change; `undefined` if it is absent or read-only. */
function nextValue(
  field: Field,
  name: string,
  { kind, body, document, stored }: SentBody,
  issues: Issue[],
): JsonValue | undefined {
  const before = member(stored, name);
  // A write-only field is not part of the stored resource, so null in a patch cannot remove it.
  const sent = member(field.writeOnly ? body : document, name);
  const isNewId = field.kind === 'id' && kind === 'create';
  if (field.readOnly && !isNewId) {
    if (Object.hasOwn(body, name) && !isSameValue(sent, before))
      report(issues, name, [{ code: 'read_only', detail: 'must not be changed' }]);
    return undefined;
  }
  // An absent field with a default keeps its value, except in a patch, which removed it.
  const isKept = sent === undefined && field.default !== undefined && kind !== 'patch';
  const next = isKept ? before : sent;
  if (next === undefined) {
    if (!field.optional && !isNewId) report(issues, name, [required]);
    return undefined;
  }
  if (!isSameValue(next, before)) report(issues, name, findViolations(field, next));
  return withoutMinusZero(next);
}

/** Returns the undeclared members, with issues for forbidden ones. */
function additionalMembers(
  shape: Shape,
  { body, document }: SentBody,
  issues: Issue[],
): [string, JsonValue][] {
  const hasMore = Object.hasOwn(shape, moreName);
  const others = hasMore ? document : body;
  // The next start would read a member with a field's earlier name as the field.
  const formers = hasMore ? Object.values(shape).map(({ renamedFrom }) => renamedFrom) : [];
  const more: [string, JsonValue][] = [];
  for (const name in others) {
    if (isTooMany(issues)) break;
    if (Object.hasOwn(shape, name) && name !== moreName) continue;
    const one = others[name] ?? null;
    if (hasMore) more.push([name, withoutMinusZero(one)]);
    const isAllowed = hasMore && !formers.includes(name);
    report(issues, name, isAllowed ? findViolations(anyJson, one) : [unknownField]);
  }
  return more;
}

function report(issues: Issue[], name: string, violations: readonly Placed[]): void {
  for (const { code, detail, place = '' } of violations)
    issues.push({ pointer: pointerTo(name) + place, code, detail });
}

/** Returns the fields' values before anything is written. */
export const collectDefaults = oncePerShape((shape): JsonObject => {
  const defaults: { [name: string]: JsonValue } = {};
  for (const name in shape) {
    const value = shape[name]?.default;
    if (value !== undefined) defaults[name] = value;
  }
  return defaults;
});

/**
 * Applies a merge patch (RFC 7396 §2) to an object with these fields, except that null is stored if
 * the field is nullable. Members that stay keep their order. Changes neither argument.
 */
export function mergePatch(
  fields: Shape,
  before: JsonValue | undefined,
  patch: JsonValue,
): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const merged = new Map(Object.entries(isJsonObject(before) ? before : {}));
  for (const [name, value] of Object.entries(patch)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const within = field?.kind === 'object' ? field.fields : {};
    if (value === null && !field?.nullable && (field === undefined || name !== valueName))
      merged.delete(name);
    else merged.set(name, mergePatch(within, merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

export function validationFailed(issues: readonly Issue[]): CairnError {
  const fields =
    issues.length === 1
      ? '1 field breaks a rule'
      : `${isTooMany(issues) ? `over ${limits.issuesMax}` : issues.length} fields break a rule`;
  const shown = issues.slice(0, limits.issuesMax);
  return new CairnError('validation_failed', `Cannot accept the body: ${fields}`, {
    issues: shown,
  });
}

/**
 * Validates each element of an array body.
 * @throws CairnError `validation_failed` with the issues of all elements; also unless this is an
 *   array of 1 to `limits.elementsMax` elements
 */
export function validateElements<T>(body: JsonValue, validate: (element: JsonValue) => T): T[] {
  if (!Array.isArray(body)) {
    throw validationFailed([{ pointer: '', code: 'wrong_type', detail: 'must be an array' }]);
  }
  if (body.length === 0 || body.length > limits.elementsMax) {
    const detail = `must have 1 to ${limits.elementsMax} elements`;
    throw validationFailed([
      { pointer: '', code: body.length === 0 ? 'too_short' : 'too_long', detail },
    ]);
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
    if (isTooMany(issues)) break;
  }
  if (issues.length > 0) throw validationFailed(issues);
  return values;
}

/** Runs `work` for one element of an array body, and adds its index to the pointers of issues. */
export const atElement = <T>(index: number, work: () => T): T =>
  pointing((pointer) => `/${index}${pointer}`, work);

/** Replaces each -0 by 0, which it would be after a restart. Values without it are not copied. */
function withoutMinusZero(value: JsonValue): JsonValue {
  if (!hasMinusZero(value)) return value;
  if (Array.isArray(value)) return value.map(withoutMinusZero);
  if (!isJsonObject(value)) return 0;
  const members = Object.entries(value).map(([name, one]) => [name, withoutMinusZero(one)]);
  return Object.fromEntries(members);
}

function hasMinusZero(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.some(hasMinusZero);
  if (!isJsonObject(value)) return Object.is(value, -0);
  for (const name in value) if (hasMinusZero(value[name] ?? null)) return true;
  return false;
}

const member = (object: JsonObject, name: string): JsonValue | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;
