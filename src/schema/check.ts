import { CairnError, invariant, type Issue } from '../base/errors.ts';
import { isJsonObject, isScalar, mergePatch, pointerTo } from '../base/json.ts';
import type { JsonObject, JsonValue, Scalar } from '../base/json.ts';
import type { Field, Input, Shape } from './field.ts';
import { readableFields, representationOf } from './representation.ts';
import { faultOf } from './rules.ts';

/**
 * What is done with a body: it creates a record, is the whole of the record `stored` (PUT), or a merge patch for it
 * (PATCH, RFC 7396). Of what is stored only members that the shape shows are looked at.
 */
export type Mode = { readonly kind: 'create' } | { readonly kind: 'replace' | 'patch'; readonly stored: object };

/** More issues than a person reads; it keeps a hostile body from growing in the answer. */
const issuesMax = 100;

/**
 * The complete writable part of the resource that `body` makes, as `shape` types it: defaults are filled in, a patch is
 * merged, what an optional field no longer has is left out, -0 is 0. What is stored already passes as it is. `locked`
 * names writable fields that this caller may only send as they are; `further` gives issues beyond the shape, for fields
 * that have none by it.
 * @throws CairnError `validation_failed` with every issue
 */
export function accept<S extends Shape>(
  shape: S,
  body: JsonValue,
  mode: Mode,
  locked: readonly (keyof S)[] = [],
  further?: (body: JsonObject) => readonly Issue[],
): Input<S> {
  const stored = mode.kind === 'create' ? {} : representationOf(shape, mode.stored);
  const document = mode.kind === 'patch' ? mergePatch(stored, body) : body;
  if (!isJsonObject(document) || !isJsonObject(body)) {
    throw invalid([{ pointer: '', code: 'wrong_type', detail: 'must be an object' }]);
  }
  const issues: Issue[] = [];
  const report = (name: string, code: string, detail: string): void => {
    if (issues.length < issuesMax) issues.push({ pointer: pointerTo(name), code, detail });
  };
  const value: { [name: string]: Scalar } = {};
  for (const name in shape) {
    const field: Field | undefined = shape[name];
    if (field === undefined) continue;
    const before = member(stored, name) ?? (mode.kind === 'create' ? field.fallback : undefined);
    // What is never shown is not part of the resource: null cannot take it away.
    const after = member(field.access === 'write-only' ? body : document, name);
    const fixed = field.access === 'read-only' || locked.includes(name);
    if (fixed && Object.hasOwn(body, name) && after !== before) report(name, 'read_only', 'must be left as it is');
    if (field.access === 'read-only') continue;
    // In a patch, to leave a field out of the result is to remove it.
    const filledIn = after === undefined && field.presence === 'defaulted' && mode.kind !== 'patch';
    const next = fixed || filledIn ? before : after;
    const fault = next === before || next === undefined ? undefined : faultOf(field.rule, next);
    if (fault !== undefined) report(name, fault.code, fault.detail);
    else if (isScalar(next)) value[name] = Object.is(next, -0) ? 0 : next;
    else if (field.presence !== 'optional') report(name, 'required', 'must be given');
  }
  for (const name in body) {
    if (!Object.hasOwn(shape, name)) report(name, 'unknown_field', 'must be left out: there is no such field');
  }
  const more = further?.(body).filter(({ pointer }) => issues.every((issue) => issue.pointer !== pointer));
  if (more !== undefined) issues.push(...more);
  if (issues.length > 0) throw invalid(issues);
  invariant(isComplete(shape, value), 'a body without issues has all the fields it needs');
  return value;
}

function isComplete<S extends Shape>(shape: S, value: object): value is Input<S> {
  for (const name in shape) {
    const field: Field | undefined = shape[name];
    const needed = field !== undefined && field.access !== 'read-only' && field.presence !== 'optional';
    if (needed && !Object.hasOwn(value, name)) return false;
  }
  return true;
}

export function invalid(issues: readonly Issue[]): CairnError {
  const least = issues.length < issuesMax ? '' : 'at least ';
  const fields = issues.length === 1 ? '1 field breaks a rule' : `${least}${issues.length} fields break a rule`;
  return new CairnError('validation_failed', `Cannot accept the body: ${fields}`, { issues });
}

/**
 * Why a record that was read from a file does not fit `shape`, to follow the record's name; `undefined` where it does.
 * Bounds are not looked at: they may have been others when the record was written. A `defaulted` field that the record
 * is older than is filled in.
 */
export function misfitOf(shape: Shape): (record: JsonObject) => string | undefined {
  const fields = readableFields(shape);
  return (record) => {
    // A loop, since a start runs it for every record. What an object inherits is no scalar, so its type tells it apart.
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
