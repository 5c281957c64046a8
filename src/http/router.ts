import { invariant, InvariantError } from '../base/errors.ts';

/**
 * A method, a path pattern such as `/items/{id}` as in OpenAPI, and the value that they
 * lead to.
 */
export interface Route<T> {
  readonly method: string;
  readonly pattern: string;
  readonly value: T;
}

/** The result of matching a request. */
export type Match<T> =
  | {
      readonly kind: 'found';
      readonly value: T;
      /**
       * The parameter exactly as sent, still percent-encoded; empty if the pattern has
       * none.
       */
      readonly parameter: string;
      /** The text after the "?", exactly as sent; empty if there is none. */
      readonly query: string;
    }
  /** The path has no route for this method. `allow` is the value of an `Allow` field. */
  | { readonly kind: 'method-not-allowed'; readonly allow: string }
  | { readonly kind: 'not-found' };

/** The routes of one pattern by method. */
interface Path<T> {
  readonly pattern: string;
  readonly byMethod: Map<string, T>;
}

/** Two routes that match the same paths. */
export class RouteConflict extends InvariantError {
  constructor(one: string, other: string) {
    super(`"${one}" and "${other}" match the same paths`);
  }
}

/**
 * Finds the route for a request. A pattern is an exact path, or has one parameter; an
 * exact path wins. Paths are compared byte by byte and never normalised:
 * `/users/../items`, `/users%2f1` and `//users` match nothing. HEAD is answered as GET.
 */
export class Router<T extends NonNullable<unknown>> {
  readonly #exact = new Map<string, Path<T>>();
  /** By the path before the parameter, such as `/items/`. */
  readonly #byPrefix = new Map<string, Path<T>>();
  /** Those with a parameter before their end, by the path without it, such as `/tasks/{}/finish`. */
  readonly #within = new Map<string, Path<T>>();

  /**
   * @throws InvariantError for a malformed pattern; RouteConflict
   */
  constructor(routes: readonly Route<T>[]) {
    for (const { method, pattern, value } of routes) {
      invariant(
        patternGrammar.test(pattern),
        `"${pattern}" is not a path pattern such as /items/{id}`,
      );
      const [prefix = '', parameter] = pattern.split('{');
      const isWithin = parameter?.includes('/') === true;
      const paths = isWithin
        ? this.#within
        : parameter === undefined
          ? this.#exact
          : this.#byPrefix;
      const key = isWithin ? pattern.replace(/\{\w+/, '{') : prefix;
      const path = paths.get(key) ?? { pattern, byMethod: new Map<string, T>() };
      const isNew = path.pattern === pattern && !path.byMethod.has(method);
      if (!isNew) throw new RouteConflict(`${method} ${pattern}`, `${method} ${path.pattern}`);
      path.byMethod.set(method, value);
      paths.set(key, path);
    }
  }

  /** Matches a target in origin-form (RFC 9112 §3.2.1), with its query. */
  match(method: string, target: string): Match<T> {
    const mark = `${target}?`.indexOf('?');
    const path = target.slice(0, mark);
    const start = path.lastIndexOf('/') + 1;
    const exact = this.#exact.get(path);
    let parameter = exact === undefined ? path.slice(start) : '';
    let found = parameter === '' ? exact : this.#byPrefix.get(path.slice(0, start));
    if (found === undefined && this.#within.size > 0) [found, parameter] = this.#matchWithin(path);
    if (found === undefined) return { kind: 'not-found' };
    const { byMethod } = found;
    const value = byMethod.get(method === 'HEAD' ? 'GET' : method);
    if (value !== undefined)
      return { kind: 'found', value, parameter, query: target.slice(mark + 1) };
    const methods = new Set([
      ...byMethod.keys(),
      'OPTIONS',
      ...(byMethod.has('GET') ? ['HEAD'] : []),
    ]);
    return { kind: 'method-not-allowed', allow: [...methods].sort().join(', ') };
  }

  /** Finds a path with a parameter before its end, and the parameter. */
  #matchWithin(path: string): [Path<T> | undefined, string] {
    const segments = path.split('/');
    for (const [key, found] of this.#within) {
      const at = key.split('/').indexOf('{}');
      const parameter = segments[at] ?? '';
      if (parameter !== '' && segments.with(at, '{}').join('/') === key) return [found, parameter];
    }
    return [undefined, ''];
  }
}

const patternGrammar =
  /^(?:\/[\w.~-]+)*\/(?:[\w.~-]+|\{[a-z][A-Za-z0-9]*\})$|^(?:\/[\w.~-]+)+\/\{[a-z]\w*\}(?:\/[\w.~-]+)+$|^\/$/;
