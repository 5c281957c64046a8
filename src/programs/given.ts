import type { JsonValue } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { recordId, type RecordId } from '../base/record-id.ts';
import { didYouMean } from '../base/likeness.ts';
import { OptionError } from '../config/options.ts';
import { isObject } from '../schema/declaration.ts';

/**
 * Checks the arguments of public functions at run time, because callers may be plain JavaScript.
 */

/** The kind of each member. Each may also be undefined. */
export interface MemberKinds {
  readonly [name: string]: keyof typeof kinds;
}

const kinds = {
  any: ['anything', () => true],
  array: ['an array', Array.isArray],
  boolean: ['true or false', (value) => typeof value === 'boolean'],
  function: ['a function', (value) => typeof value === 'function'],
  number: ['a number', (value) => typeof value === 'number'],
  object: ['an object', isObject],
  text: ['a text', (value) => typeof value === 'string'],
} as const satisfies {
  readonly [kind: string]: readonly [name: string, (value: unknown) => boolean];
};

/**
 * Checks that `given` is an object with only the members of `what`, each of its kind.
 * @throws OptionError that names the member, which would have no effect or an unintended one
 */
export function checkMembers(
  what: string,
  given: unknown,
  known: MemberKinds,
  advice: { readonly [name: string]: string } = {},
): void {
  if (!isObject(given))
    throw new OptionError(`Cannot use ${String(given)}: ${what} takes an object`, what);
  for (const [name, value] of Object.entries(given)) {
    const kind = Object.hasOwn(known, name) ? known[name] : undefined;
    if (kind === undefined) {
      const advised = Object.hasOwn(advice, name) ? advice[name] : undefined;
      const hint = advised ?? didYouMean(name, Object.keys(known));
      throw new OptionError(`Cannot use "${name}": ${what} has no such option${hint}`, name);
    }
    const [allowed, isAllowed] = kinds[kind];
    if (value === undefined || isAllowed(value)) continue;
    throw new OptionError(`Cannot use "${name}": ${what} takes ${allowed}`, name);
  }
}

/**
 * @throws OptionError for a further argument, such as an `as` after the options, which would have
 *   no effect
 */
export function refuseMore(what: string, more: readonly never[]): void {
  if (more.length > 0)
    throw new OptionError(`Cannot use more arguments: ${what} takes one object of options`, what);
}

export const toName = (given: unknown): string => String(isObject(given) ? given['name'] : given);

/** @throws OptionError for anything but a number or a text */
export function toId(id: unknown): RecordId {
  if (typeof id === 'string' || (typeof id === 'number' && !Number.isNaN(id))) return recordId(id);
  throw new OptionError(`Cannot use the id ${String(id)}: it is a number or a text`, 'id');
}

/**
 * Returns a value as JSON, without undefined members.
 * @throws TypeError that locates a value JSON lacks, such as a Date
 */
export function toJson(value: unknown, at = '', depth = 1): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  // The depth of requests. The limit also ends circular values.
  if (depth > limits.jsonDepthMax)
    throw new TypeError(`Cannot write the value: it is deeper than ${limits.jsonDepthMax} levels`);
  const within = (name: string | number, one: unknown): JsonValue =>
    toJson(one, `${at}/${name}`, depth + 1);
  if (Array.isArray(value)) return value.map((one: unknown, index) => within(index, one));
  if (typeof value === 'object' && isPlain(value)) {
    const members = Object.entries(value).filter(([, one]) => one !== undefined);
    return Object.fromEntries(members.map(([name, one]) => [name, within(name, one)]));
  }
  const advice = value instanceof Date ? ': pass date.toISOString()' : '';
  throw new TypeError(`Cannot write the value at "${at}": it is not JSON${advice}`);
}

/** @throws TypeError as `toJson` */
export const jsonText = (value: unknown): string => JSON.stringify(toJson(value));

export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

export const isThenable = (value: unknown): boolean => typeof Object(value).then === 'function';

/** @throws TypeError for a promise, after making sure that its rejection cannot end the process */
export function refusePromise(value: unknown, what: string): void {
  if (!isThenable(value)) return;
  Promise.resolve(value).catch(() => undefined);
  throw new TypeError(`${what} must be synchronous: it returned a promise`);
}
