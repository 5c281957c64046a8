import type { Principal } from '../../auth/access.ts';
import { CairnError, invariant, type Issue } from '../../base/errors.ts';
import { oldGenerationBytes } from '../../base/heap.ts';
import { pointerTo } from '../../base/json.ts';
import { limits } from '../../base/limits.ts';
import { readId, recordId, type RecordId } from '../../base/record-id.ts';
import { fieldValue, isSameValue, looksSame } from '../../schema/record.ts';
import { isTooMany, validationFailed } from '../../schema/validate.ts';
import type { Shape, Value } from '../../schema/field.ts';
import type { StoredRecord, Transaction } from '../../store/store.ts';
import { embed, listEmbeddables } from './embedding.ts';
import { includes, findPermission } from '../../collections/permissions.ts';
import { readIfAllowed } from '../../collections/reader.ts';
import { addTimes, ownerField, listReferences } from '../../collections/declared-rules.ts';
import type {
  Declared,
  Entry,
  Reference,
  ReferenceRules,
  ReferenceTarget,
  Registry,
} from '../../collections/declared.ts';

/** Ids that the record had before are not checked again. */
const check: ReferenceRules['check'] = (tx, principal, { outgoing }, input, before) => {
  const issues: Issue[] = [];
  for (const { name, field, to } of outgoing) {
    const value = fieldValue(input, name);
    const known = before && fieldValue(before, name);
    if (value === undefined || isSameValue(value, known)) continue;
    const former = new Set<unknown>([known].flat());
    for (const [index, id] of [value].flat().entries()) {
      if (former.has(id)) continue;
      const found = readIfAllowed(tx, to, principal, recordId(id));
      // A number and its text find the same record, but only one of them is its id.
      if (found !== undefined && readId(found) === id) continue;
      if (isTooMany(issues)) break;
      const pointer = pointerTo(name) + (typeof value === 'object' ? `/${index}` : '');
      const what = to.isUsers ? 'user' : `record of ${field.to} that you may read`;
      const detail = `must be the id of a ${what}`;
      issues.push({ pointer, code: 'no_such_record', detail });
    }
  }
  if (issues.length > 0) throw validationFailed(issues);
};

/** Collects all removals and changes first, so references may have any order and be circular. */
const remove: ReferenceRules['remove'] = (tx, principal, of, record, now, most) => {
  const removal = new Removal(of, record, most);
  for (const [{ incoming }, removed] of removal.removed) {
    const id = readId(removed);
    for (const reference of incoming) {
      const referrers = tx.of(reference.from.records).referring(reference.name, id);
      removal.count(referrers.countAtMost);
      for (const referrer of referrers) removal.add(reference, referrer, id);
    }
  }
  tx.whole(() => removal.write(tx, principal, now));
};

/** The rules of references, which are loaded if a declared field refers to records. */
export const references: ReferenceRules = { link, embed, check, remove };

function link(registry: Registry, users: ReferenceTarget | undefined): void {
  for (const from of registry.values()) {
    for (const [name, field] of listReferences(from.fields)) {
      const to = registry.get(field.to) ?? users;
      invariant(to?.name === field.to, `${field.to} is declared, to which ${name} refers`);
      const reference = { from, name, field, to };
      from.outgoing.push(reference);
      to.incoming.push(reference);
    }
    if (from.ownerRemoved)
      users?.incoming.push({ from, name: 'ownerId', field: ownerField, to: users });
  }
  for (const each of registry.values()) each.embeddables.push(...listEmbeddables(each));
}

class Removal {
  /** Grows during iteration. */
  readonly removed: [ReferenceTarget, StoredRecord][] = [];
  readonly #removedKeys = new Set<string>();
  readonly #others: { reference: Reference; referrer: Entry; id: RecordId }[] = [];
  readonly #most: number;
  /** The most text of changed records: a commit holds it all as one string. */
  readonly #lengthMax: number;
  readonly #advice: string;
  #count = 0;

  constructor(from: ReferenceTarget, record: StoredRecord, most?: number) {
    this.#most = most ?? limits.referrersMax;
    this.#lengthMax = most ?? oldGenerationBytes() * limits.clearedHeapShareMax;
    this.#advice = from.isUsers
      ? '"cairn user remove --with-records"'
      : 'remove some of them first';
    this.#remove(from, record);
  }

  /** @throws CairnError `still_referenced` if there are too many */
  count(more: number): void {
    this.#count += more;
    if (this.#count <= this.#most) return;
    throw this.#tooMuch(`over ${this.#most} records depend on it`);
  }

  add(reference: Reference, referrer: Entry, id: RecordId): void {
    if (reference.field.onDelete === 'remove') this.#remove(reference.from, referrer);
    else this.#others.push({ reference, referrer, id });
  }

  /** Writes referring records before those they refer to. */
  write(tx: Transaction, principal: Principal, now: number): void {
    const remaining = this.#others.filter(
      ({ reference, referrer }) => !this.#removedKeys.has(referenceKey(reference.from, referrer)),
    );
    const refusing = remaining.filter(({ reference }) => reference.field.onDelete !== 'clear');
    const [first] = refusing;
    if (first !== undefined) {
      const { from } = first.reference;
      const { name } = from;
      const those = refusing.filter(({ reference }) => reference.from === from);
      const count = new Set(those.map(({ referrer }) => referrer.id)).size;
      const counted = count === 1 ? '1 record refers' : `${count} records refer`;
      // Only a caller that may list the records learns their number.
      const listed = findPermission(from.access, principal, 'list');
      const isKnown = those.every(({ referrer }) => includes(listed, referrer));
      const refer = isKnown ? counted : 'records refer';
      throw new CairnError(
        'still_referenced',
        `Cannot remove the record: ${refer} to it in ${name}`,
      );
    }
    // Visits each field once: a long list may refer to many removed records.
    const clearing = new Map<string, { reference: Reference; referrer: Entry; ids: Set<Value> }>();
    for (const { reference, referrer, id } of remaining) {
      const key = `${reference.name} ${referenceKey(reference.from, referrer)}`;
      const known = clearing.get(key);
      if (known === undefined) clearing.set(key, { reference, referrer, ids: new Set([id]) });
      else known.ids.add(id);
    }
    const cleared = new Map<string, { readonly from: Declared; readonly after: Entry }>();
    for (const { reference, referrer, ids } of clearing.values()) {
      const { from, name } = reference;
      const key = referenceKey(from, referrer);
      const after = without(cleared.get(key)?.after ?? referrer, from.fields, name, ids);
      invariant(after !== undefined, 'a reference that is cleared is optional, or in a list');
      cleared.set(key, { from, after });
    }
    let length = 0;
    for (const { after } of cleared.values()) length += JSON.stringify(after).length;
    if (length > this.#lengthMax) throw this.#tooMuch('what depends on it is too long');
    for (const { from, after } of cleared.values()) {
      const timed = addTimes(from, after, now, after['createdAt']);
      const written = tx.of(from.records).replace(after.id, timed);
      const isAsDeclared = looksSame(from.fields, after, written);
      invariant(
        isAsDeclared,
        `beforeWrite must set no fields of ${from.name} when a removal clears its reference`,
      );
    }
    for (const [{ records }, { id }] of this.removed.toReversed()) tx.of(records).remove(id);
  }

  #tooMuch(problem: string): CairnError {
    const message = `Cannot remove the record: ${problem}`;
    return new CairnError('still_referenced', `${message}; ${this.#advice}`);
  }

  #remove(from: ReferenceTarget, record: StoredRecord): void {
    const key = referenceKey(from, record);
    if (this.#removedKeys.has(key)) return;
    this.#removedKeys.add(key);
    this.removed.push([from, record]);
  }
}

const referenceKey = ({ name }: ReferenceTarget, { id }: StoredRecord): string => `${name}/${id}`;

/**
 * Returns a stored record without some values of a field; `undefined` if the field is required and
 * not a list.
 */
function without(
  record: Entry,
  fields: Shape,
  name: string,
  some: ReadonlySet<Value>,
): Entry | undefined {
  const values = fieldValue(record, name);
  if (Array.isArray(values))
    return { ...record, [name]: values.filter((each: Value) => !some.has(each)) };
  if (fields[name]?.optional !== true) return undefined;
  const changed = { ...record };
  Reflect.deleteProperty(changed, name);
  return changed;
}
