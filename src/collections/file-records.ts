import { localAdministrator } from '../auth/access.ts';
import { CairnError, type Issue } from '../base/errors.ts';
import { isJsonObject, isScalar, pointerTo, type JsonValue, type Scalar } from '../base/json.ts';
import { readId, recordId, type RecordId } from '../base/record-id.ts';
import { splitShape, type Value } from '../schema/field.ts';
import { ruleViolation } from '../schema/kinds.ts';
import { toShown } from '../schema/record.ts';
import { creation, validateBody } from '../schema/validate.ts';
import type { AnyTable } from '../store/memory/table.ts';
import type { CollectionDeclaration } from './declaration.ts';
import type { Registry } from './declared.ts';

/** Records from a file or table, checked against their declaration. */

export interface NewRecord {
  readonly id: RecordId | undefined;
  readonly fields: { readonly [name: string]: Value };
}

/** Mistakes of a file, grouped by cause, with their number and first places. */
export class Mistakes {
  readonly #places = new Map<string, { count: number; readonly first: string[] }>();

  /** `problem` is a phrase such as "posts: title must be given". */
  add(problem: string, pointer: string): void {
    const known = this.#places.get(problem);
    if (known === undefined) this.#places.set(problem, { count: 1, first: [pointer] });
    else {
      known.count += 1;
      if (known.first.length < 3) known.first.push(pointer);
    }
  }

  get lines(): string[] {
    return Array.from(this.#places, ([problem, { count, first }]) => {
      const times = count === 1 ? '' : `${count.toLocaleString('en')} times, first `;
      return `${problem} (${times}${first.join(', ')})`;
    });
  }
}

/**
 * Returns the problems for which an import would refuse stored records, a line per cause. A
 * stricter declaration only applies to later writes.
 */
export function brokenRules(
  registry: Registry,
  tables: ReadonlyMap<string, Pick<AnyTable, 'view'>>,
): readonly string[] {
  const mistakes = new Mistakes();
  for (const collection of registry.values()) {
    const { name, fields, isSingle } = collection;
    for (const stored of tables.get(name)?.view().blocks.flat() ?? []) {
      const shown = toShown(fields, stored);
      addIssues(mistakes, name, isSingle ? '' : pointerTo(String(readId(stored))), () =>
        toNewRecord(collection, shown),
      );
    }
  }
  return mistakes.lines;
}

/** Adds the issues that `validate` finds in a record, worded by `describe`. */
export function addIssues(
  mistakes: Mistakes,
  name: string,
  pointer: string,
  validate: () => void,
  describe = (issue: Issue): Issue => issue,
): void {
  try {
    validate();
  } catch (error) {
    if (!(error instanceof CairnError) || error.issues === undefined) throw error;
    for (const { pointer: member, detail } of error.issues.map(describe)) {
      const subject = member === '' ? `${name}:` : `${name}: ${member.slice(1)}`;
      mistakes.add(`${subject} ${detail}`, pointer + member);
    }
  }
}

export function issue(pointer: string, detail: string): CairnError {
  const issues = [{ pointer, code: 'import', detail }];
  return new CairnError('validation_failed', 'Cannot import the record', { issues });
}

/**
 * Returns a record of a file, or the value of a single resource, in stored form. Unless the field
 * is nullable, null means absent.
 * @throws CairnError `validation_failed` with all issues
 */
export function toNewRecord(
  { fields, timestamps }: CollectionDeclaration,
  sent: JsonValue,
): NewRecord {
  const validate = (body: JsonValue) =>
    validateBody({ shape: fields }, body, creation, localAdministrator);
  const { value: whole, takesMore } = splitShape(fields);
  if (whole !== undefined || !isJsonObject(sent)) return { id: undefined, fields: validate(sent) };
  const body: [string, JsonValue][] = [];
  const own: { [name: string]: Scalar } = {};
  for (const [name, value] of Object.entries(sent)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const takesNull = field === undefined ? takesMore : ruleViolation(field, null) === undefined;
    if (value === null && !takesNull) continue;
    const isOwn =
      (name === 'id' && Object.hasOwn(fields, name)) ||
      (timestamps && /^(created|updated)At$/.test(name));
    if (!isOwn) body.push([name, value]);
    else if (field !== undefined && isScalar(value)) {
      const violation = ruleViolation(field, value);
      if (violation !== undefined) throw issue(`/${name}`, violation.detail);
      own[name] = value;
    } else throw issue(`/${name}`, 'must be a text or a number');
  }
  const input = validate(Object.fromEntries(body));
  const { id, ...times } = own;
  return { id: id === undefined ? id : recordId(id), fields: { ...input, ...times } };
}
