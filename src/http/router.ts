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

/** Two patterns of one method match the same path, and neither is the more specific one. */
export class RouteConflictError extends Error {
  override readonly name = 'RouteConflictError';
}

const notFound = { kind: 'not-found' } as const;
const segmentGrammar = /^(?:[A-Za-z0-9._~-]+|\{[a-z][A-Za-z0-9]*\})$/;

interface Leaf<T> {
  readonly value: T;
  readonly names: readonly string[];
}

interface Branch<T> {
  readonly literals: Map<string, Branch<T>>;
  parameter: Branch<T> | undefined;
  readonly leaves: Map<string, Leaf<T>>;
}

/**
 * Finds the route of a request. What a route leads to is opaque here. The more specific pattern wins, never the
 * earlier one; paths are compared byte by byte and never normalised, so `/users/../items`, `/users%2f1` and `//users`
 * lead nowhere. HEAD is GET.
 */
export class Router<T> {
  readonly #root: Branch<T> = createBranch();

  /** @throws RouteConflictError naming both patterns */
  constructor(routes: readonly Route<T>[]) {
    const placed: Route<T>[] = [];
    for (const route of routes) {
      const conflict = placed.find((other) => other.method === route.method && conflicts(other, route));
      if (conflict !== undefined) {
        const [one, two] = [conflict, route].map(({ method, pattern }) => `"${method} ${pattern}"`);
        throw new RouteConflictError(`Cannot route ${two}: ${one} matches the same paths and is no less specific`);
      }
      this.#place(route);
      placed.push(route);
    }
  }

  /** Matches a target in origin-form (RFC 9112 §3.2.1), with its query. */
  match(method: string, target: string): Match<T> {
    const mark = target.indexOf('?');
    const path = mark === -1 ? target : target.slice(0, mark);
    if (path.charCodeAt(0) !== slash) return notFound;
    const wanted = method === 'HEAD' ? 'GET' : method;
    const values: string[] = [];
    const leaf = find(this.#root, path, 1, values, ({ leaves }) => leaves.has(wanted))?.leaves.get(wanted);
    if (leaf !== undefined) {
      const parameters: Record<string, string> = {};
      // Names come from patterns, whose grammar leaves no room for `__proto__`.
      for (let index = 0; index < leaf.names.length; index += 1) {
        parameters[leaf.names[index] ?? ''] = values[index] ?? '';
      }
      return { kind: 'found', value: leaf.value, parameters, query: mark === -1 ? '' : target.slice(mark + 1) };
    }
    const methods = new Set<string>();
    find(this.#root, path, 1, [], ({ leaves }) => {
      for (const other of leaves.keys()) methods.add(other);
      return false;
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
        branch = branch.parameter ??= createBranch();
      } else {
        let next = branch.literals.get(segment);
        if (next === undefined) branch.literals.set(segment, (next = createBranch()));
        branch = next;
      }
    }
    branch.leaves.set(method, { value, names });
  }
}

const slash = 0x2f;

function createBranch<T>(): Branch<T> {
  return { literals: new Map(), parameter: undefined, leaves: new Map() };
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

/** The segments of a pattern; `/` has the one empty segment that the path `/` has. */
function segmentsOf(pattern: string): string[] {
  const segments = pattern.slice(1).split('/');
  const sound = pattern.startsWith('/') && (pattern === '/' || segments.every((one) => segmentGrammar.test(one)));
  if (!sound) throw new RouteConflictError(`Cannot route "${pattern}": it is not a path pattern`);
  return segments;
}

/** Whether two patterns share a path although neither matches a true subset of what the other does. */
function conflicts<T>(one: Route<T>, two: Route<T>): boolean {
  const first = segmentsOf(one.pattern);
  const second = segmentsOf(two.pattern);
  if (first.length !== second.length) return false;
  let firstNarrower = false;
  let secondNarrower = false;
  for (const [index, segment] of first.entries()) {
    const other = second[index] ?? '';
    if (isParameter(segment) && isParameter(other)) continue;
    if (isParameter(segment)) secondNarrower = true;
    else if (isParameter(other)) firstNarrower = true;
    else if (segment !== other) return false;
  }
  return firstNarrower === secondNarrower;
}

/**
 * The branch at the end of a path that `accepts` takes: one segment at a time, a literal before a parameter, and back
 * up where it takes none. `values` become those of the parameters on the way.
 */
function find<T>(
  branch: Branch<T>,
  path: string,
  start: number,
  values: string[],
  accepts: (end: Branch<T>) => boolean,
): Branch<T> | undefined {
  if (start > path.length) return accepts(branch) ? branch : undefined;
  const end = path.indexOf('/', start);
  const segment = end === -1 ? path.slice(start) : path.slice(start, end);
  const next = end === -1 ? path.length + 1 : end + 1;
  const literal = branch.literals.get(segment);
  const found = literal === undefined ? undefined : find(literal, path, next, values, accepts);
  if (found !== undefined || branch.parameter === undefined || segment === '') return found;
  values.push(segment);
  const below = find(branch.parameter, path, next, values, accepts);
  if (below === undefined) values.pop();
  return below;
}
