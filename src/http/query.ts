import { CairnError } from '../base/errors.ts';

/** Decoded values by name, in order. */
export type Query = ReadonlyMap<string, readonly string[]>;

const empty: Query = new Map();

/**
 * Parses a query without its "?", in the form that browsers and `URLSearchParams` send
 * (application/x-www-form-urlencoded, WHATWG URL §5.1), but strictly.
 * @throws CairnError `invalid_query` for a malformed percent-encoding or invalid UTF-8
 */
export function parseQuery(query: string): Query {
  if (query === '') return empty;
  try {
    // `URLSearchParams` would silently replace malformed parts.
    decodeURIComponent(query);
  } catch (cause) {
    const message = 'Cannot read the query: it is not percent-encoded UTF-8';
    throw new CairnError('invalid_query', message, { cause });
  }
  const parameters = new Map<string, string[]>();
  // The "&" keeps a "?" at the beginning from being removed.
  for (const [name, value] of new URLSearchParams(`&${query}`)) {
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else values.push(value);
  }
  return parameters;
}
