/** Any value that JSON can carry (RFC 8259). Objects have no prototype surprises: keys are data. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}
