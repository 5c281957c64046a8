import { invariant, type Issue } from '../base/errors.ts';
import {
  isJsonObject,
  isScalar,
  mergePatch,
  pointerTo,
  type JsonObject,
  type JsonValue,
  type Scalar,
} from '../base/json.ts';
import type { Field, Input, Representation, Shape } from './field.ts';
import { faultOf } from './rules.ts';

/** What is done with a body. `stored` is the record that it is for; only members that the shape shows are looked at. */
export type Mode =
  | { readonly kind: 'create' }
  /** PUT: the body is the whole resource. */
  | { readonly kind: 'replace'; readonly stored: object }
  /** PATCH: the body is a merge patch (RFC 7396) for what is stored. */
  | { readonly kind: 'patch'; readonly stored: object };

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** More issues than a person reads; it keeps a hostile body from growing in the answer. */
const issuesMax = 100;

/**
 * Checks `body` against `shape` and reports all issues at once. The value is the complete writable part of the
 * resource: defaults are filled in, a patch is merged, what an optional field no longer has is left out, -0 is 0.
 * What is stored already passes as it is. `locked` names writable fields that this caller may only send as they are.
 */
export function check<S extends Shape>(
  shape: S,
  body: JsonValue,
  mode: Mode,
  locked: readonly (keyof S)[] = [],
): Checked<Input<S>> {
  const stored = mode.kind === 'create' ? {} : shown(shape, mode.stored);
  const document = mode.kind === 'patch' ? mergePatch(stored, body) : body;
  if (!isJsonObject(document) || !isJsonObject(body)) {
    return { ok: false, issues: [{ pointer: '', code: 'wrong_type', detail: 'must be an object' }] };
  }
  const issues: Issue[] = [];
  const report = (name: string, code: string, detail: string): void => {
    if (issues.length < issuesMax) issues.push({ pointer: pointerTo(name), code, detail });
  };
  const value: { [name: string]: Scalar } = {};
  for (const [name, field] of Object.entries(shape)) {
    const before = member(stored, name) ?? (mode.kind === 'create' ? field.fallback : undefined);
    const after = member(document, name);
    const readOnly = field.access === 'read-only';
    if (readOnly || locked.includes(name)) {
      if (Object.hasOwn(body, name) && after !== before) report(name, 'read_only', 'must be left as it is');
      if (readOnly) continue;
      if (isScalar(before)) value[name] = before;
      else if (field.presence !== 'optional') report(name, 'required', 'must be given');
    } else if (after === undefined) {
      const kept = keepsStored(field, mode) ? before : undefined;
      if (isScalar(kept)) value[name] = kept;
      else if (field.presence !== 'optional') report(name, 'required', 'must be given');
    } else {
      const fault = after === before ? undefined : faultOf(field.rule, after);
      if (fault !== undefined) report(name, fault.code, fault.detail);
      else if (isScalar(after)) value[name] = Object.is(after, -0) ? 0 : after;
    }
  }
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(shape, name)) report(name, 'unknown_field', 'must be left out: there is no such field');
  }
  if (issues.length > 0) return { ok: false, issues };
  invariant(isComplete(shape, value), 'a body without issues has all the fields it needs');
  return { ok: true, value };
}

function isComplete<S extends Shape>(shape: S, value: object): value is Input<S> {
  return Object.entries(shape).every(
    ([name, field]) => field.access === 'read-only' || field.presence === 'optional' || Object.hasOwn(value, name),
  );
}

/**
 * A test of whether a record that was read from a file has the fields of `shape` that are shown, each of the right
 * type. Bounds are not checked: they may have been others when the record was written.
 */
export function conformance<S extends Shape>(
  shape: S,
): (record: JsonObject) => record is JsonObject & Representation<S> {
  const fields = Object.entries(shape).filter(([, field]) => field.access !== 'write-only');
  return (record): record is JsonObject & Representation<S> => {
    // A loop, since a start runs it for every record. What an object inherits is no scalar, so its type tells it apart.
    for (const [name, field] of fields) {
      if (hasType(field, record[name])) continue;
      if (field.presence !== 'optional' || Object.hasOwn(record, name)) return false;
    }
    return true;
  };
}

/** The members of `record` that `shape` shows. */
function shown(shape: Shape, record: object): JsonObject {
  const members: [string, unknown][] = Object.entries(record);
  const scalars: { [name: string]: Scalar } = {};
  for (const [name, value] of members) {
    if (Object.hasOwn(shape, name) && shape[name]?.access !== 'write-only' && isScalar(value)) scalars[name] = value;
  }
  return scalars;
}

const member = (object: JsonObject, name: string): JsonValue | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** Whether a field that a body leaves out is filled in. In a patch, to leave it out of the result is to remove it. */
function keepsStored(field: Field, mode: Mode): boolean {
  return field.presence === 'defaulted' && mode.kind !== 'patch';
}

function hasType({ rule }: Field, value: unknown): boolean {
  if (rule.kind === 'number' || rule.kind === 'integer') return Number.isFinite(value);
  if (rule.kind === 'boolean') return typeof value === 'boolean';
  if (rule.kind === 'choice') return typeof value === 'string' && rule.values.includes(value);
  return typeof value === 'string';
}
