import { CairnError } from '../base/errors.ts';

/**
 * The decoded values of each query parameter in order, by name. Repeated parameters are
 * kept.
 */
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
    // Checked here, because `URLSearchParams` replaces what is malformed.
    decodeURIComponent(query);
  } catch (cause) {
    const message = 'Cannot read the query: it is not percent-encoded UTF-8';
    throw new CairnError('invalid_query', message, { cause });
  }
  const parameters = new Map<string, string[]>();
  // The "&" protects a "?" at the beginning, which would be removed.
  for (const [name, value] of new URLSearchParams(`&${query}`)) {
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else values.push(value);
  }
  return parameters;
}
