import { CairnError, type Issue } from '../base/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { check, issuesMax, type Mode } from '../schema/check.ts';
import type { Input, Shape } from '../schema/field.ts';

/**
 * The body as `shape` types it. `locked` names fields that this caller may send only as they are stored; `further`
 * gives issues beyond the shape, for fields that have none by it, so that all of them are reported at once.
 * @throws CairnError `validation_failed` with every issue
 */
export function accept<S extends Shape>(
  shape: S,
  body: JsonValue,
  mode: Mode,
  locked: readonly (keyof S)[] = [],
  further: (body: JsonObject) => readonly Issue[] = () => [],
): Input<S> {
  const checked = check(shape, body, mode, locked);
  const found = checked.ok ? [] : checked.issues;
  const more = isJsonObject(body) ? further(body) : [];
  const issues = [...found, ...more.filter(({ pointer }) => found.every((issue) => issue.pointer !== pointer))];
  if (checked.ok && issues.length === 0) return checked.value;
  throw invalid(issues);
}

export function invalid(issues: readonly Issue[]): CairnError {
  const least = issues.length < issuesMax ? '' : 'at least ';
  const fields = issues.length === 1 ? '1 field breaks a rule' : `${least}${issues.length} fields break a rule`;
  return new CairnError('validation_failed', `Cannot accept the body: ${fields}`, { issues });
}
