import type { JsonObject, JsonValue, Scalar } from '../base/json.ts';
import type { CollectionDefinition } from '../collections/declaration.ts';
import type { Field, Shape } from '../schema/field.ts';

/** The types of records, derived from the definition of their collection. */

/** A synchronous result: an `async` function does not compile. */
export type NoPromise =
  Scalar | bigint | symbol | null | undefined | void | (object & { readonly then?: never });

export type DefinitionOf<C> = C extends { readonly definition: infer D } ? D : C;

/** A record as programs read it. It has any members if the collection is given by name. */
export type Output<C> =
  DefinitionOf<C> extends infer D extends CollectionDefinition
    ? D extends { readonly value: infer F }
      ? ValueOf<F, []>
      : OwnId<D> & Stored<FieldsOf<D>, []> & Times<D> & More<D>
    : JsonObject;

/**
 * The body that creates or replaces a record. Optional members and those with a default may be
 * absent.
 */
export type Input<C> =
  DefinitionOf<C> extends infer D extends CollectionDefinition
    ? D extends { readonly value: infer F }
      ? ValueOf<F, []>
      : GivenId<D> & Sent<FieldsOf<D>, []> & More<D>
    : JsonObject;

/** A merge patch (RFC 7396): null removes a member, or is stored if the field is nullable. */
export type Patch<C> =
  DefinitionOf<C> extends infer D extends CollectionDefinition
    ? D extends { readonly value: infer F }
      ? PatchOf<F>
      : {
          readonly [K in keyof FieldsOf<D>]?: PatchOf<FieldsOf<D>[K]> | undefined;
        } & More<D>
    : JsonObject;

/** A single resource that is given by name has any value. */
export type Single<C, T> = C extends string ? JsonValue : T;

/**
 * Filters, like the parameters of a list: `{ done: false, 'price:gte': 10 }`. An array matches any
 * of its values; with `ne` none of them, with `has` all of them. It must not be empty. Null matches
 * records without a value.
 */
export type Where<C> =
  DefinitionOf<C> extends infer D extends CollectionDefinition
    ? Filters<FieldsOf<D>> &
        Filters<{ id: { kind: IdKindOf<D> } }> &
        Times<D, true> &
        Further &
        MoreFilters<D>
    : { readonly [parameter: string]: Operand | readonly Operand[] | null | undefined };

type Operand = Scalar;

interface Further {
  /** A text in any text field, ignoring case. */
  readonly q?: string | undefined;
  /** Alternatives: `(price:lt:10,state:eq:new)`. */
  readonly or?: string | undefined;
  /** The records of the caller in `as`. */
  readonly owner?: 'me' | undefined;
  /** A member of an object. */
  readonly [path: `${string}.${string}`]: Operand | readonly Operand[] | undefined;
}

type MoreFilters<D> = D extends { readonly additional: true }
  ? { readonly [parameter: string]: Operand | readonly Operand[] | null | undefined }
  : unknown;

type One<F> = F extends { readonly kind: 'list'; readonly of: infer E }
  ? One<E>
  : Extract<Exclude<ValueOf<F, []>, null>, Scalar>;

type Filters<S> = {
  readonly [K in keyof S & string as K | `${K}:ne`]?:
    One<S[K]> | readonly One<S[K]>[] | null | undefined;
} & {
  readonly [K in keyof S & string as `${K}:${'lt' | 'lte' | 'gt' | 'gte'}`]?: One<S[K]> | undefined;
} & {
  readonly [K in keyof S & string as `${K}:in`]?: readonly One<S[K]>[] | undefined;
} & {
  readonly [K in keyof S & string as `${K}:has`]?: One<S[K]> | readonly One<S[K]>[] | undefined;
} & {
  readonly [K in keyof S & string as `${K}:${'contains' | 'starts' | 'ends'}`]?: string | undefined;
} & { readonly [K in keyof S & string as `${K}:exists`]?: boolean | undefined };

type FieldsOf<D> = D extends { readonly fields: infer S } ? S : unknown;

/** The names of fields that are `Wanted`; any text if the fields are unknown. */
type FieldNames<C, Wanted> =
  DefinitionOf<C> extends infer D extends CollectionDefinition
    ? FieldsOf<D> extends infer S extends Shape
      ? { [K in keyof S & string]: S[K] extends Wanted ? K : never }[keyof S & string]
      : string
    : string;

/** The unique fields, for `find`. */
export type UniqueName<C> = FieldNames<C, { readonly unique: boolean }>;

/** The fields that refer to records, for `referring`. */
export type ReferenceName<C> = FieldNames<
  C,
  { readonly to: string } | { readonly of: { readonly to: string } }
>;

/** A term of `sort`: a field, or a member of an object, with "-" before it to reverse the order. */
export type SortTerm<C> = Reversible<SortName<C>>;

export type Reversible<N extends string> = N | `-${N}`;

type SortName<C> =
  | FieldNames<C, { readonly kind: Exclude<Field['kind'], 'list' | 'object'> }>
  | 'id'
  | `${string}.${string}`
  | (DefinitionOf<C> extends { readonly timestamps: true } ? 'createdAt' | 'updatedAt' : never)
  | (DefinitionOf<C> extends { readonly additional: true } ? string : never);

/** The kind of ids. By default, the server generates them. */
type IdKindOf<D> = D extends { readonly id: { readonly kind: 'text' } }
  ? 'text'
  : D extends { readonly id: { readonly kind: 'any' } }
    ? 'reference'
    : 'integer';

export type IdOf<D> = Values[IdKindOf<D>];

/** A single resource has no id. */
type OwnId<D> = D extends { readonly single: true } ? unknown : { readonly id: IdOf<D> };

type GivenId<D> = D extends {
  readonly id: { readonly kind: 'text' | 'any' } | { readonly given: true };
}
  ? { readonly id?: IdOf<D> | undefined }
  : unknown;

type Times<D, Filtered = false> = D extends { readonly timestamps: true }
  ? Filtered extends true
    ? Filters<{ createdAt: { kind: 'timestamp' }; updatedAt: { kind: 'timestamp' } }>
    : { readonly createdAt: string; readonly updatedAt: string }
  : unknown;

type More<D> = D extends { readonly additional: true }
  ? { readonly [name: string]: JsonValue }
  : unknown;

/** The readable members of a shape. The length of the tuple `Depth` counts the levels. */
export type Stored<S, Depth extends 0[]> = {
  readonly [K in keyof S as S[K] extends Optional ? never : K]: ValueOf<S[K], Depth>;
} & { readonly [K in keyof S as S[K] extends Optional ? K : never]?: ValueOf<S[K], Depth> };

/** The members of a shape in a request. */
type Sent<S, Depth extends 0[]> = {
  readonly [K in keyof S as MayBeAbsent<S[K]> extends true ? never : K]: ValueOf<S[K], Depth>;
} & {
  readonly [K in keyof S as MayBeAbsent<S[K]> extends true ? K : never]?:
    ValueOf<S[K], Depth> | undefined;
};

type MayBeAbsent<F> = F extends Optional
  ? true
  : F extends { readonly default: unknown }
    ? true
    : false;

interface Optional {
  readonly optional: true;
}

type PatchOf<F> =
  | (F extends Optional ? null : never)
  | (F extends { readonly kind: 'object'; readonly fields: infer S }
      ? { readonly [K in keyof S]?: PatchOf<S[K]> | undefined }
      : ValueOf<F, []>)
  | (F extends { readonly nullable: true } ? null : never);

/** The type of a field's values. Values nested more than five levels deep are any JSON. */
type ValueOf<F, Depth extends 0[]> =
  | (F extends { readonly nullable: true } ? null : never)
  | (Depth['length'] extends 5 ? JsonValue : PlainValue<F, Depth>);

type PlainValue<F, Depth extends 0[]> = F extends { readonly kind: 'list'; readonly of: infer E }
  ? readonly ValueOf<E, [...Depth, 0]>[]
  : F extends { readonly kind: 'object'; readonly fields: infer S }
    ? Stored<S, [...Depth, 0]> & More<F>
    : F extends { readonly kind: 'choice'; readonly values: readonly (infer V)[] }
      ? V
      : F extends { readonly kind: infer K extends keyof Values }
        ? Values[K]
        : JsonValue;

interface Values {
  readonly text: string;
  readonly email: string;
  readonly url: string;
  readonly timestamp: string;
  readonly password: string;
  readonly number: number;
  readonly integer: number;
  readonly boolean: boolean;
  /** One collection's definition does not know the id type of another. */
  readonly reference: number | string;
  readonly json: JsonValue;
}
