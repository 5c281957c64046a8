import { CairnError } from '../base/errors.ts';

/** The parameters of a query by name, each with all of its values in order: that one is repeated stays visible. */
export type Query = ReadonlyMap<string, readonly string[]>;

const empty: Query = new Map();

/**
 * Parses a query without its "?", in the form that browsers and `URLSearchParams` send
 * (application/x-www-form-urlencoded, WHATWG URL §5.1), but strictly.
 * @throws CairnError `invalid_query` for a bad percent-encoding or invalid UTF-8
 */
export function parseQuery(query: string): Query {
  if (query === '') return empty;
  const parameters = new Map<string, string[]>();
  for (const piece of query.split('&')) {
    if (piece === '') continue;
    const equals = piece.indexOf('=');
    const name = decode(equals === -1 ? piece : piece.slice(0, equals));
    const value = equals === -1 ? '' : decode(piece.slice(equals + 1));
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else values.push(value);
  }
  return parameters;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (cause) {
    throw new CairnError('invalid_query', 'Cannot read the query: it is not percent-encoded UTF-8', { cause });
  }
}
