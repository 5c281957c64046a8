import { invariant } from '../base/errors.ts';

/** A method and a path pattern such as `/items/{id}`, the same string as in OpenAPI, with whatever it leads to. */
export interface Route<T> {
  readonly method: string;
  readonly pattern: string;
  readonly value: T;
}

export interface Found<T> {
  readonly kind: 'found';
  readonly value: T;
  /** By the names in the pattern, exactly as sent: still percent-encoded, never empty. */
  readonly parameters: Readonly<Record<string, string>>;
  /** What follows the "?", exactly as sent; empty where there is none. */
  readonly query: string;
}

/** The path is known, the method is not one of its own. OPTIONS comes here too: it is answered from `allow`. */
export interface MethodNotAllowed {
  readonly kind: 'method-not-allowed';
  /** The value of an `Allow` field (RFC 9110 §10.2.1), such as `GET, HEAD, OPTIONS, POST`. */
  readonly allow: string;
}

export type Match<T> = Found<T> | MethodNotAllowed | typeof notFound;

const notFound = { kind: 'not-found' } as const;
const segmentGrammar = /^(?:[A-Za-z0-9._~-]+|\{[a-z][A-Za-z0-9]*\})$/;

/** What a route leads to, and the names of its pattern. */
interface Leaf<T> {
  readonly value: T;
  readonly names: readonly string[];
}

/** Where a path may end (`leaves`, by method) or go on. */
class Branch<T> {
  readonly literals = new Map<string, Branch<T>>();
  parameter: Branch<T> | undefined;
  readonly leaves = new Map<string, Leaf<T>>();
}

/**
 * Finds the route of a request. What a route leads to is opaque here. The more specific pattern wins, never the
 * earlier one; paths are compared byte by byte and never normalised, so `/users/../items`, `/users%2f1` and `//users`
 * lead nowhere. HEAD is GET.
 */
export class Router<T> {
  readonly #root = new Branch<T>();

  /** @throws InvariantError naming the pattern that is none, or two of one method of which neither is more specific */
  constructor(routes: readonly Route<T>[]) {
    for (const [index, route] of routes.entries()) {
      const rival = routes.slice(0, index).find(({ method, pattern }) =>
        method === route.method && conflicts(pattern, route.pattern));
      const both = `"${route.method} ${route.pattern}" and "${rival?.method} ${rival?.pattern}"`;
      invariant(rival === undefined, `${both} match the same paths, and neither is more specific`);
      this.#place(route);
    }
  }

  /** Matches a target in origin-form (RFC 9112 §3.2.1), with its query. */
  match(method: string, target: string): Match<T> {
    const mark = target.indexOf('?');
    const path = mark === -1 ? target : target.slice(0, mark);
    if (!path.startsWith('/')) return notFound;
    const wanted = method === 'HEAD' ? 'GET' : method;
    const values: string[] = [];
    const leaf = find(this.#root, path, 1, values, (leaves) => leaves.get(wanted));
    if (leaf !== undefined) {
      const parameters: Record<string, string> = {};
      // Names come from patterns, whose grammar leaves no room for `__proto__`.
      for (let index = 0; index < leaf.names.length; index += 1) {
        parameters[leaf.names[index] ?? ''] = values[index] ?? '';
      }
      return { kind: 'found', value: leaf.value, parameters, query: mark === -1 ? '' : target.slice(mark + 1) };
    }
    const methods = new Set<string>();
    find(this.#root, path, 1, [], (leaves) => {
      for (const other of leaves.keys()) methods.add(other);
      return undefined;
    });
    if (methods.size === 0) return notFound;
    methods.add('OPTIONS');
    if (methods.has('GET')) methods.add('HEAD');
    return { kind: 'method-not-allowed', allow: [...methods].sort().join(', ') };
  }

  #place({ method, pattern, value }: Route<T>): void {
    const names: string[] = [];
    let branch = this.#root;
    for (const segment of segmentsOf(pattern)) {
      if (isParameter(segment)) {
        names.push(segment.slice(1, -1));
        branch = branch.parameter ??= new Branch<T>();
      } else {
        let next = branch.literals.get(segment);
        if (next === undefined) branch.literals.set(segment, (next = new Branch<T>()));
        branch = next;
      }
    }
    branch.leaves.set(method, { value, names });
  }
}

const isParameter = (segment: string): boolean => segment.startsWith('{');

/** The segments of a pattern; `/` has the one empty segment that the path `/` has. */
function segmentsOf(pattern: string): string[] {
  const segments = pattern.slice(1).split('/');
  const isSound = pattern.startsWith('/') && (pattern === '/' || segments.every((one) => segmentGrammar.test(one)));
  invariant(isSound, `a route needs a path pattern, and not "${pattern}"`);
  return segments;
}

/** Whether two patterns share a path although neither matches a true subset of what the other does. */
function conflicts(one: string, two: string): boolean {
  const [first, second] = [segmentsOf(one), segmentsOf(two)];
  const places = first.map((segment, index) => [segment, second[index] ?? ''] as const);
  const isApart = places.some(([a, b]) => a !== b && !isParameter(a) && !isParameter(b));
  const isFirstWider = places.some(([a, b]) => isParameter(a) && !isParameter(b));
  const isSecondWider = places.some(([a, b]) => !isParameter(a) && isParameter(b));
  return first.length === second.length && !isApart && isFirstWider === isSecondWider;
}

/**
 * What `pick` finds where a path ends: one segment at a time, a literal before a parameter, and back up where it finds
 * nothing. `values` become those of the parameters on the way.
 */
function find<T>(
  branch: Branch<T>,
  path: string,
  start: number,
  values: string[],
  pick: (leaves: Branch<T>['leaves']) => Leaf<T> | undefined,
): Leaf<T> | undefined {
  if (start > path.length) return pick(branch.leaves);
  const end = path.indexOf('/', start);
  const segment = end === -1 ? path.slice(start) : path.slice(start, end);
  const next = end === -1 ? path.length + 1 : end + 1;
  const literal = branch.literals.get(segment);
  const found = literal === undefined ? undefined : find(literal, path, next, values, pick);
  if (found !== undefined || branch.parameter === undefined || segment === '') return found;
  values.push(segment);
  const below = find(branch.parameter, path, next, values, pick);
  if (below === undefined) values.pop();
  return below;
}
