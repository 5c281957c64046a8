import { localAdministrator } from '../auth/access.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';
import { recordId } from '../base/record-id.ts';
import type { Writes } from '../collections/writes.ts';
import { localTarget, type CollectionResource } from '../collections/resource.ts';
import { creation, draft, validateBody } from '../schema/validate.ts';
import { representationOf } from '../schema/record.ts';
import type { Transaction } from '../store/store.ts';

/**
 * A declared collection for a program, which uses it as an administrator: with the same
 * validation, references and hooks as requests, and without access rules. Records are as
 * callers see them.
 */
export interface ProgramCollection {
  /** `undefined` if there is no record with this id. */
  get(id: number | string): JsonObject | undefined;
  /** All records, by ascending id. */
  list(): JsonObject[];
  /** @throws CairnError `validation_failed`, `not_unique`, and those of every write */
  create(record: JsonValue): Promise<JsonObject>;
  /** Applies a merge patch (RFC 7396). @throws CairnError as `create`, and `not_found` */
  change(id: number | string, patch: JsonValue): Promise<JsonObject>;
  /** @throws CairnError `not_found`, `still_referenced`, and those of every write */
  remove(id: number | string): Promise<void>;
}

export function programCollection(resource: CollectionResource, writes: Writes): ProgramCollection {
  const { fields, records } = resource.collection;
  const rules = { shape: fields };
  const write = <T>(work: (tx: Transaction) => T): Promise<T> =>
    writes.write(localAdministrator, work);
  const shown = (record: object): JsonObject => representationOf(fields, record);
  return {
    get(id) {
      const record = records.withId(recordId(id));
      return record && shown(record);
    },
    list: () => records.view().blocks.flat().map(shown),
    async create(record) {
      const input = validateBody(rules, record, creation, localAdministrator);
      return shown(await write((tx) => resource.create(tx, localAdministrator, input)));
    },
    async change(id, patch) {
      const change = draft('patch', rules, patch, localAdministrator);
      return shown((await write((tx) => resource.change(tx, localTarget(id), change))).record);
    },
    remove: (id) => write((tx) => resource.remove(tx, localTarget(id))),
  };
}
