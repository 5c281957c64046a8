// @ts-check
/** Shared types. Only the type checker reads this file: no browser loads it. */

/**
 * A record as the API returns it.
 * @typedef {{ readonly id: number, readonly [field: string]: any }} Row
 */

/**
 * An event of the feed, and several of one kind.
 * @typedef {{ type: 'created' | 'replaced' | 'removed', collection: string, id: number, record?: Row }} Change
 * @typedef {Change & { key: number, count: number, at: number }} Activity
 */

/** @typedef {{ readonly id: number, readonly name: string, readonly email: string, readonly role: string }} User */

/** @typedef {{ data: Row, etag: string }} Stored a record with its entity tag */

/**
 * The parts of an OpenAPI document that the page reads.
 * @typedef {string | number | boolean | readonly unknown[]} Scalar
 * @typedef {{ type?: string | string[], items?: Schema,
 *   properties?: { [name: string]: Schema }, required?: string[], enum?: (string | null)[], pattern?: string,
 *   $ref?: string, examples?: readonly unknown[], format?: string, minimum?: number, maximum?: number, minLength?: number, maxLength?: number, maxItems?: number,
 *   'x-default'?: Scalar, 'x-references'?: string, readOnly?: boolean, description?: string, additionalProperties?: unknown }} Schema
 * @typedef {{ content?: { [type: string]: { schema: Schema } } }} Content
 * @typedef {Content & { description?: string, $ref?: string }} Answer
 * @typedef {{ operationId: string, 'x-access'?: string, summary?: string, description?: string, tags?: string[],
 *   requestBody?: Content, responses?: { [status: string]: Answer },
 *   parameters?: { name: string, in?: string, description?: string, schema: Schema }[] }} Operation
 * @typedef {{ get?: Operation, post?: Operation, put?: Operation, patch?: Operation, delete?: Operation }} Path
 * @typedef {{ kind?: string, label?: string, format?: 'image' | 'percent' | { money: string },
 *   colors?: { [value: string]: string }, like?: string, multiline?: boolean, set?: string[], to?: string,
 *   onDelete?: 'refuse' | 'remove' | 'clear', unique?: boolean, default?: Scalar, values?: string[], of?: Declared,
 *   fields?: { [name: string]: Declared } }} Declared
 * @typedef {{ parameters: string[], filters: { [path: string]: string[] }, sort: string[], fields: string[],
 *   embed: string[] }} Lists
 * @typedef {{ name: string, singular: string, single?: boolean, id?: Declared, value?: Declared, timestamps?: boolean,
 *   builtIn?: 'users' | 'items', additional?: boolean, display?: string,
 *   group?: string, hidden?: boolean, fields?: { [name: string]: Declared }, lists?: Lists }} DescribedCollection
 * @typedef {{ paths: { [path: string]: Path }, 'x-collections': DescribedCollection[], info: { description: string },
 *   components: { schemas: { [name: string]: Schema }, responses?: { [name: string]: Answer } } }} ApiDescription
 */

/**
 * A field. `shown`, `created` and `changed`: part of a record, of a new record and of a patch.
 * `isOptional`: may be absent. `within`: the paths of the optional objects around a nested field.
 * @typedef {'text' | 'email' | 'password' | 'number' | 'integer' | 'boolean' | 'choice' | 'time' |
 *   'long' | 'list' | 'reference' | 'json' | 'url'} Kind
 * @typedef {{ name: string, label: string, kind: Kind, declared: Declared, schema: Schema, shown: boolean, created: boolean,
 *   changed: boolean, isRequired: boolean, isOptional: boolean, isSortable: boolean, within?: readonly string[] }} Field
 */

/**
 * A filter of a list in words: the parameters that it needs, and its value if it has only one. `field` is its operand.
 * @typedef {{ names: readonly string[], field: Field, operator: string, value?: string | undefined }} Filter
 */

/**
 * One collection. `nameField`: the field that names a record to people; `filters`: its filter parameters, in words;
 * `single`: whether it is one value for the server, of fields or of any kind; it has the id `value` in addresses.
 * `newestFirst`: the order by creation, if the server notes it; records of one batch by id. `isOpenEnded`: records may have further members; `bulkMax`: the most records in one request; `operations`: the operations it offers, each with its access rule.
 * @typedef {{ name: string, one: string, title: string, nameField: string, fields: readonly Field[], single: false | 'fields' | 'value', sortMax: number,
 *   isOpenEnded: boolean, newestFirst?: string | undefined, display: string,
 *   group?: string | undefined, isHidden: boolean, isUsers: boolean, hasSearch: boolean, filters: readonly Filter[], bulkMax: number,
 *   hasOwners: boolean, operations: { [name: string]: Operation | undefined } }} Collection
 */

/** @typedef {{ key: string, text: string, more: string }} Suggestion what a combobox offers, with a second text */

/** @typedef {{ [field: string]: string }} Texts the texts of the controls of a form */

/**
 * A form. `before` has the stored texts and `texts` those of the controls. `disputes` has the
 * previous value and the other person's, for each field that both changed. `sent` is the body that
 * may have arrived, and `retryKey` its idempotency key. `isNew`: nothing is stored yet. `isGone`:
 * someone else removed the record. `isOwner`: the person created it.
 * @typedef {{ key: string, collection: Collection, id: string, isSaving: boolean, isUnknown: boolean, isGone: boolean, isNew: boolean, isOwner: boolean,
 *   base?: Stored | undefined, before: Texts, texts: Texts, issues: Texts, disputes: { [field: string]: [before: string, theirs: string] }, message: string,
 *   sent: string, retryKey: string }} Draft
 */

/**
 * `#items/5?sort=-price` has the view `items` and the id `5`; `#/items/5` is that record's page
 * (`isPage`). The page's own views have only an id: `#/account`. `#/api/items/listItems` has the id
 * `api`, for an operation of `items`.
 * @typedef {{ view: string, id: string, of?: string | undefined, operation?: string | undefined,
 *   isPage: boolean, query: URLSearchParams }} Route
 * @typedef {{ collection: Collection, rows: readonly Row[], text: string, key: string, undo: () => void }} Removal
 */

/**
 * An attribute's value: a function is an event handler (`onclick`); `undefined` and `false` omit
 * the attribute. `key` identifies an element among its siblings.
 * @typedef {(event: Event) => unknown} Handler
 * @typedef {{ [name: string]: string | number | boolean | undefined | Handler }} Attributes
 * @typedef {{ tag: string, attributes: Attributes, children: readonly Child[] }} Description
 * @typedef {Description | string | number | boolean | undefined} Child
 */

/**
 * The response of `/status`.
 * @typedef {{ at: string, requests: number, p99Ms: number, writes: number, failedSignIns: number,
 *   records: number }} Minute
 * @typedef {{ version: string, startedAt: string, state: 'writable' | 'full' | 'unavailable' | 'failed', minutes: readonly Minute[], records: number,
 *   memoryBytes: number, memoryMaxBytes: number, refusals: { [cause: string]: number }, journalBytes: number,
 *   checkpointedAt?: string, freeBytes?: number, diskBytes?: number, heapUsedBytes: number,
 *   heapMaxBytes: number }} Server
 */

export {};
