import { invariant, InvariantError } from '../base/errors.ts';

/**
 * A route. Its value is returned if a request has the method and matches the pattern, such as
 * `/items/{id}` (as in OpenAPI).
 */
export interface RoutePattern<T> {
  readonly method: string;
  readonly pattern: string;
  readonly value: T;
}

export type Match<T> =
  | {
      readonly kind: 'found';
      readonly value: T;
      /** Still percent-encoded; empty if there is none. */
      readonly parameter: string;
      readonly query: string;
    }
  /** `allow` is the value of an `Allow` field. */
  | { readonly kind: 'method-not-allowed'; readonly allow: string }
  | { readonly kind: 'not-found' };

interface Path<T> {
  readonly pattern: string;
  readonly byMethod: Map<string, T>;
}

export class RouteConflict extends InvariantError {
  constructor(one: string, other: string) {
    super(`"${one}" and "${other}" match the same paths`);
  }
}

/**
 * Finds the route for a request. A pattern is an exact path, or has one parameter; an exact path
 * wins. Paths are compared byte by byte and never normalised: `/users/../items`, `/users%2f1` and
 * `//users` match nothing. HEAD is handled as GET.
 */
export class Router<T extends NonNullable<unknown>> {
  /** By path, with `?` for the parameter: no path has one. */
  readonly #paths = new Map<string, Path<T>>();
  #segmentsMax = 0;

  /** @throws InvariantError for a malformed pattern; RouteConflict */
  constructor(routes: readonly RoutePattern<T>[]) {
    for (const { method, pattern, value } of routes) {
      invariant(
        patternGrammar.test(pattern),
        `"${pattern}" is not a path pattern such as /items/{id}`,
      );
      const key = pattern.replace(/\{\w+\}/, '?');
      const path = this.#paths.get(key) ?? { pattern, byMethod: new Map<string, T>() };
      const isNew = path.pattern === pattern && !path.byMethod.has(method);
      if (!isNew) throw new RouteConflict(`${method} ${pattern}`, `${method} ${path.pattern}`);
      path.byMethod.set(method, value);
      this.#paths.set(key, path);
      if (key !== pattern)
        this.#segmentsMax = Math.max(this.#segmentsMax, pattern.split('/').length - 1);
    }
  }

  /** `target` is in origin-form (RFC 9112 §3.2.1), with its query. */
  match(method: string, target: string): Match<T> {
    const mark = `${target}?`.indexOf('?');
    const path = target.slice(0, mark);
    const [found, parameter] = this.#find(path);
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

  /** Tries each segment from the end as the parameter. */
  #find(path: string): [found: Path<T> | undefined, parameter: string] {
    const exact = this.#paths.get(path);
    if (exact !== undefined) return [exact, ''];
    let end = path.length;
    for (let tries = this.#segmentsMax; tries > 0 && end > 0; tries -= 1) {
      const start = path.lastIndexOf('/', end - 1) + 1;
      const parameter = path.slice(start, end);
      const found =
        parameter === ''
          ? undefined
          : this.#paths.get(`${path.slice(0, start)}?${path.slice(end)}`);
      if (found !== undefined) return [found, parameter];
      end = start - 1;
    }
    return [undefined, ''];
  }
}

const patternGrammar =
  /^(?:\/[\w.~-]+)*\/(?:[\w.~-]+|\{[a-z][A-Za-z0-9]*\})$|^(?:\/[\w.~-]+)+\/\{[a-z]\w*\}(?:\/[\w.~-]+)+$|^\/$/;
