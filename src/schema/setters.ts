import { pointerTo, isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { oncePerShape, type Field, type Shape } from './field.ts';
import { isSameValue } from './record.ts';

/** The caller of a write, as far as rules depend on it. */
export interface Sender {
  readonly userId?: number | undefined;
  readonly role?: string | undefined;
}

/** True if a field, or one in an object, limits who may set it. */
export const hasSetters: (shape: Shape) => boolean = oncePerShape((shape) =>
  Object.values(shape).some(
    (field) => field.set !== undefined || (field.kind === 'object' && hasSetters(field.fields)),
  ),
);

function maySet({ set }: Field, { sender, ownerId }: Change): boolean {
  const { userId, role = '' } = sender;
  if (set === undefined || role === 'admin' || set.includes(role)) return true;
  return set.includes('owner') && userId !== undefined && userId > 0 && userId === ownerId;
}

interface Change {
  readonly kind: 'create' | 'replace' | 'patch';
  readonly sender: Sender;
  /** The record's owner; for a new one, the caller. */
  readonly ownerId: number | undefined;
  /** Receives the pointers of fields that the caller may not set. */
  readonly refuse: (pointer: string) => void;
}

/**
 * Returns an object's values after a change, without changes to fields that the caller may not set.
 * A missing value stays, except in a patch, which is already merged into `next`. Null and absence
 * are equal.
 */
export function keepUnsettable(
  shape: Shape,
  before: JsonObject,
  next: JsonObject,
  change: Change,
  at = '',
): JsonObject {
  const { kind } = change;
  const result: { [name: string]: JsonValue } = { ...next };
  const put = (name: string, value: JsonValue | undefined): void => {
    if (value === undefined) Reflect.deleteProperty(result, name);
    else result[name] = value;
  };
  for (const [name, field] of Object.entries(shape)) {
    const pointer = at + pointerTo(name);
    const [was, value] = [valueIn(before, name), valueIn(next, name)];
    const isLeftOut = value === undefined && kind !== 'patch';
    if (!maySet(field, change)) {
      const isRefused = !isLeftOut && !isSameValue(value ?? null, was ?? null);
      if (isRefused) change.refuse(pointer);
      if (isRefused || kind !== 'create') put(name, was);
    } else if (isLeftOut && field.default !== undefined) {
      // The whole value stays, or is the default.
    } else if (field.kind === 'object' && hasSetters(field.fields)) {
      const [own, sent] = [was, value].map((one) => (isJsonObject(one) ? one : {}));
      // A parent that is null or removed has no members.
      const how = isLeftOut || isJsonObject(value) ? change : { ...change, kind: 'patch' as const };
      const kept = keepUnsettable(field.fields, own ?? {}, sent ?? {}, how, pointer);
      if (isJsonObject(value) || (isLeftOut && kind === 'replace' && Object.keys(kept).length > 0))
        put(name, kept);
    }
  }
  return result;
}

const valueIn = (object: JsonObject, name: string): JsonValue | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

export type KeepUnsettable = typeof keepUnsettable;
