import type { Issue } from '../base/errors.ts';
import type { JsonObject, JsonValue } from '../base/json.ts';
import { validateBody, type Valid } from './check.ts';
import type { Input, Shape } from './field.ts';

/** The caller who sends a body, as far as rules look at it. */
export interface Sender {
  readonly userId?: number | undefined;
  readonly role?: string | undefined;
}

/** What a body may hold. */
export interface BodyRules<S extends Shape> {
  readonly shape: S;
  /** Finds issues beyond the rules of the fields. `stored` is the record as it is, and empty for a new one. */
  readonly furtherIssues?: (sent: JsonObject, stored: object, sender: Sender) => readonly Issue[];
}

/** The new record that `body` describes. @throws CairnError `validation_failed` with every issue */
export function acceptNew<S extends Shape>(rules: BodyRules<S>, body: JsonValue, sender: Sender): Valid<Input<S>> {
  const { shape, furtherIssues = () => [] } = rules;
  return validateBody(shape, body, { kind: 'create' }, (sent) => furtherIssues(sent, {}, sender));
}

/**
 * A body that replaces (PUT) or patches (PATCH) a record. It gives nothing away before `against` has validated it
 * together with the stored record: that happens inside the transaction, behind 404 and 428, because a read-only field
 * is accepted when it is sent as it is stored, and a patch is judged by what it makes of the record.
 */
export class Draft<S extends Shape> {
  readonly kind: 'replace' | 'patch';
  readonly #rules: BodyRules<S>;
  readonly #body: JsonValue;
  readonly #sender: Sender;

  constructor(kind: 'replace' | 'patch', rules: BodyRules<S>, body: JsonValue, sender: Sender) {
    this.kind = kind;
    this.#rules = rules;
    this.#body = body;
    this.#sender = sender;
  }

  /** What this body makes of `stored`. @throws CairnError `validation_failed` with every issue */
  against(stored: object): Valid<Input<S>> {
    const { shape, furtherIssues = () => [] } = this.#rules;
    const { kind } = this;
    return validateBody(shape, this.#body, { kind, stored }, (sent) => furtherIssues(sent, stored, this.#sender));
  }
}
