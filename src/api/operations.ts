import type { Principal } from '../auth/access.ts';
import { recordId, type RecordId } from '../base/record-id.ts';
import type { StartedSession } from '../accounts/sessions.ts';
import type { Prepared } from '../accounts/users.ts';
import { readIfAllowed, makeReader, type Purpose, type Reader } from '../collections/reader.ts';
import type { Target } from '../collections/resource.ts';
import type { Collection, Store, StoredRecord, Transaction } from '../store/store.ts';
import { authorizeRoute } from './authenticate.ts';
import type { Operation, RoutedCollection } from './call.ts';
import { entityTag } from './versions.ts';

/** Writes a collection's records. Implemented by `Users` and `CollectionResource`. */
export interface Resource<N, C> {
  readonly records: Collection<StoredRecord>;
  prepareCreate?(principal: Principal, input: N, address: string): Promise<Prepared>;
  prepareChange?(target: Target, draft: C): Promise<Prepared>;
  create(tx: Transaction, principal: Principal, input: N, prepared?: Prepared): StoredRecord;
  /** If absent, records are created one by one. */
  createMany?(tx: Transaction, principal: Principal, inputs: readonly N[]): StoredRecord[];
  change(tx: Transaction, target: Target, draft: C, prepared?: Prepared): ChangedRecord;
  remove(tx: Transaction, target: Target): void;
}

export interface ChangedRecord {
  readonly record: StoredRecord;
  readonly isNew?: boolean;
  /** The session that replaces the caller's, if the change ended that. */
  readonly renewed?: StartedSession | undefined;
}

/**
 * The operations on one collection, for requests and programs, inside a transaction or outside.
 * Each is decided in this order, by the functions named first:
 *
 *     admit                    the caller may do this to some record (401, 403, 404)
 *     read, change, remove     the record exists, and the caller may see it (404)
 *                              the caller may change it (403)
 *     change, remove           its revision is named, and is the current one (428, 412)
 *     create, change           the fields follow their rules (422)
 *     create, change, remove   other records allow it (409, 422)
 */
export class Operations<N = unknown, C = unknown> {
  readonly collection: RoutedCollection<N, C>;
  readonly resource: Resource<N, C>;
  readonly #store: Pick<Store, 'epoch'>;

  constructor(
    collection: RoutedCollection<N, C>,
    resource: Resource<N, C>,
    store: Pick<Store, 'epoch'>,
  ) {
    this.collection = collection;
    this.resource = resource;
    this.#store = store;
  }

  /** @throws CairnError `authentication_required`, `insufficient_scope`, `not_found` */
  admit(operation: Operation, principal: Principal, id = recordId(0)): void {
    const { collection } = this;
    const access = collection.access[operation === 'createMany' ? 'create' : operation];
    const method = operation === 'read' || operation === 'list' ? 'GET' : 'POST';
    authorizeRoute({ method, access, of: { collection, operation } }, principal, id);
  }

  readonly tagOf = (revision: number, selection?: string): string =>
    entityTag(this.#store.epoch, revision, this.collection.shapeTag, selection);

  reader(principal: Principal, purpose: Purpose): Reader {
    const { access } = this.collection;
    return makeReader({ records: this.resource.records, access }, principal, purpose);
  }

  read(principal: Principal, id: RecordId, tx?: Transaction): StoredRecord | undefined {
    if (tx === undefined) return this.reader(principal, 'read').withId(id);
    const { access } = this.collection;
    return readIfAllowed(tx, { records: this.resource.records, access }, principal, id);
  }
}
