import { invariant } from '../base/errors.ts';

/** A method and a path pattern such as `/items/{id}`, written as in OpenAPI, and the value that they lead to. */
export interface Route<T> {
  readonly method: string;
  readonly pattern: string;
  readonly value: T;
}

/** A route, with what the target says beside it. */
export interface Found<T> {
  readonly kind: 'found';
  readonly value: T;
  /** The parameter exactly as sent, still percent-encoded; empty if the pattern has none. */
  readonly parameter: string;
  /** The text after the "?", exactly as sent; empty if there is none. */
  readonly query: string;
}

/** The path is known, but not with this method. OPTIONS is such a method: it is answered from `allow`. */
export interface MethodNotAllowed {
  readonly kind: 'method-not-allowed';
  /** The value of an `Allow` field (RFC 9110 §10.2.1), such as `GET, HEAD, OPTIONS, POST`. */
  readonly allow: string;
}

export type Match<T> = Found<T> | MethodNotAllowed | typeof notFound;

const notFound = { kind: 'not-found' } as const;

/** The routes of a path by method, or of all paths that begin alike and end in a parameter. */
interface Path<T> {
  readonly pattern: string;
  readonly byMethod: Map<string, T>;
}

/**
 * Finds the route for a request; the values of the routes are opaque here. A pattern is an exact path, or one whose
 * last segment is a parameter; an exact path wins. Paths are compared byte by byte and never normalised:
 * `/users/../items`, `/users%2f1` and `//users` match nothing. HEAD is answered as GET.
 */
export class Router<T extends NonNullable<unknown>> {
  /** By path; a parameter stands there as `{}`. */
  readonly #paths = new Map<string, Path<T>>();

  /** @throws InvariantError for a pattern that is none, and for two that match the same paths */
  constructor(routes: readonly Route<T>[]) {
    for (const { method, pattern, value } of routes) {
      invariant(patternGrammar.test(pattern), `a route needs a path pattern, and not "${pattern}"`);
      const key = pattern.replace(/\{.*/, '{}');
      const path = this.#paths.get(key) ?? { pattern, byMethod: new Map<string, T>() };
      const isNew = path.pattern === pattern && !path.byMethod.has(method);
      invariant(isNew, `"${method} ${pattern}" and "${method} ${path.pattern}" match the same paths`);
      path.byMethod.set(method, value);
      this.#paths.set(key, path);
    }
  }

  /** Matches a target in origin-form (RFC 9112 §3.2.1), with its query. */
  match(method: string, target: string): Match<T> {
    const mark = `${target}?`.indexOf('?');
    const path = target.slice(0, mark);
    const start = path.lastIndexOf('/') + 1;
    const last = path.slice(start);
    const wanted = method === 'HEAD' ? 'GET' : method;
    const prefixed = last === '' ? undefined : this.#paths.get(`${path.slice(0, start)}{}`);
    const candidates = [this.#paths.get(path), prefixed];
    for (const candidate of candidates) {
      const value = candidate?.byMethod.get(wanted);
      const parameter = candidate === prefixed ? last : '';
      if (value !== undefined) return { kind: 'found', value, parameter, query: target.slice(mark + 1) };
    }
    const methods = new Set(candidates.flatMap((candidate) => [...(candidate?.byMethod.keys() ?? [])]));
    if (methods.size === 0) return notFound;
    if (methods.has('GET')) methods.add('HEAD');
    return { kind: 'method-not-allowed', allow: [...methods.add('OPTIONS')].sort().join(', ') };
  }
}

const patternGrammar = /^(?:\/[\w.~-]+)*\/(?:[\w.~-]+|\{[a-z][A-Za-z0-9]*\})$|^\/$/;
