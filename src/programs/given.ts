import type { JsonValue } from '../base/json.ts';
import { didYouMean } from '../base/search.ts';
import { OptionError } from '../config/options.ts';

/** The checks of what a program passes, which may be plain JavaScript. */

/**
 * Returns `given`: all its members are known to `what`.
 * @throws OptionError for what is no object, and for a member that would have no effect
 */
export function withMembers<T extends object>(
  what: string,
  given: T,
  known: readonly string[],
  advice: { readonly [name: string]: string } = {},
): T {
  if (typeof given !== 'object' || given === null)
    throw new OptionError(`Cannot use ${String(given)}: ${what} takes an object`, what);
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return given;
  const hint = advice[unknown] ?? didYouMean(unknown, known);
  throw new OptionError(`Cannot use "${unknown}": ${what} has no such option${hint}`, unknown);
}

/**
 * Returns a value as JSON, without members that are undefined.
 * @throws TypeError for what JSON has not, such as a Date, with its place
 */
export function jsonOf(value: unknown, at = ''): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (Array.isArray(value))
    return value.map((one: unknown, index) => jsonOf(one, `${at}/${index}`));
  if (typeof value === 'object' && isPlain(value)) {
    const members = Object.entries(value).filter(([, one]) => one !== undefined);
    return Object.fromEntries(members.map(([name, one]) => [name, jsonOf(one, `${at}/${name}`)]));
  }
  const advice = value instanceof Date ? ': pass date.toISOString()' : '';
  throw new TypeError(`Cannot write the value at "${at}": it is no JSON${advice}`);
}

/** Whether an object is of no class. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Whether a value is a promise, of whatever class. */
export const isThenable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'then' in value;

/** @throws TypeError for a promise: its rejection must not end the process */
export function refusePromise(value: unknown, what: string): void {
  if (!isThenable(value)) return;
  Promise.resolve(value).catch(() => undefined);
  throw new TypeError(`${what} must be synchronous: it returned a promise`);
}

/** Waits for `work`, but no longer than `timeoutMs`. @throws what `late` returns */
export async function inTime<T>(
  work: Promise<T>,
  timeoutMs: number,
  late: () => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), timeoutMs);
  });
  try {
    return await Promise.race([work, end]);
  } finally {
    clearTimeout(timer);
  }
}
