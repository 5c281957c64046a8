import type { JsonObject } from '../base/json.ts';
import type { CompleteInput, Shape } from './field.ts';
import { findKind } from './kinds.ts';
import { fieldValue, readableFields } from './record.ts';

/** Returns a record from a file with its type, or why it does not fit. */
export type RecordParser<S extends Shape> = <R extends JsonObject>(
  record: R,
) => (R & CompleteInput<S>) | string;

/**
 * Returns a parser of records from a file. For a record that does not fit `shape` or is not sound,
 * it returns the problem, worded to follow the record's name. It fills in defaults, and checks
 * types but not rules, which may have changed since the record was written.
 */
export function storedRecordParser<S extends Shape>(
  shape: S,
  isSound: (record: CompleteInput<S>) => boolean = () => true,
): RecordParser<S> {
  const fields = readableFields(shape)
    .filter(([, { kind }]) => kind !== 'id')
    .map(([name, field]) => [name, field, findKind(field)] as const);
  return <R extends JsonObject>(stored: R) => {
    let record = stored;
    // Every start runs this for every record.
    for (const [name, field, kind] of fields) {
      const value = fieldValue(record, name);
      if (kind.hasType(value, field)) continue;
      if (value === null && field.nullable) continue;
      if (value !== undefined)
        return `has a "${name}" that is not of kind ${field.kind}: correct it by hand`;
      if (field.default !== undefined) record = { ...record, [name]: field.default };
      else if (field.readOnly)
        return `has no "${name}", which the server sets: add it by hand, as other records have it`;
      else if (!field.optional)
        return `has no "${name}": add it by hand, or make a new field optional or give it a default`;
    }
    // The loop has checked each field.
    const typed = record as R & CompleteInput<S>;
    return isSound(typed) ? typed : unsound;
  };
}

const unsound = 'has values that the server never writes together: correct it by hand';
