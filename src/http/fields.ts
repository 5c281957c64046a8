/**
 * The fields of one request (RFC 9110 §5), looked at once. Repetition is never hidden: `get` answers only where a
 * field occurs once, and a field that must not be repeated but is, is refused when the request is accepted.
 */
export interface Fields {
  /** The value of the field with this lower-case name, without surrounding white space; `undefined` when absent. */
  get(name: string): string | undefined;
  /** Names and values in turn, as received. */
  readonly raw: readonly string[];
}
