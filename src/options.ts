import { invariant } from './base/errors.ts';

/** Which texts are taken, and what value each becomes. */
export interface Rule<T> {
  /** The value's name in the help, such as `PORT`; empty for a switch, which stands alone on the command line. */
  readonly placeholder: string;
  /** What is allowed, to follow "must be". */
  readonly allowed: string;
  /** `undefined`: the text is not allowed. */
  readonly parse: (text: string) => T | undefined;
  /** In which the value is a number, where the text has to name a unit. */
  readonly unit?: string | undefined;
}

/**
 * One option of the command line. The same declaration makes the flag, the environment variable, the help, the check
 * and the README's list.
 */
export interface Option<T> extends Rule<T> {
  /** The flag without its dashes. */
  readonly name: string;
  /** Absent for what belongs to one use of a command and not to an installation. */
  readonly variable: string | undefined;
  /** What it is for: one sentence without a full stop. */
  readonly help: string;
  readonly default: T;
  /** The default as a person would type it; empty where there is none. */
  readonly defaultText: string;
}

/** Something is wrong with how Cairn was called; `message` is one line that names the option and what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What the options of a table come to. */
export type Values<T> = { readonly [K in keyof T]: T[K] extends Option<infer V> ? V : never };

/** Reads every option of a table. */
export function readAll<T extends { readonly [name: string]: Option<unknown> }>(
  table: T, read: <V>(option: Option<V>, name: string) => V,
): Values<T> {
  const isWhole = (values: object): values is Values<T> => Object.keys(table).every((name) => name in values);
  const values = Object.fromEntries(Object.entries(table).map(([name, option]) => [name, read(option, name)]));
  invariant(isWhole(values), 'every option of a table is read');
  return values;
}

/** `defaultText` is what holds where nothing is given. */
export function option<T>(name: string, help: string, rule: Rule<T>, defaultText: string | number): Option<T> {
  const value = rule.parse(String(defaultText));
  invariant(value !== undefined, 'the default of an option is itself allowed');
  return { ...optional(name, help, rule, String(defaultText)), default: value };
}

/** `defaultText` tells what happens where nothing is given. */
export function optional<T>(name: string, help: string, rule: Rule<T>, defaultText = ''): Option<T | undefined> {
  const variable = `CAIRN_${name.replaceAll('-', '_').toUpperCase()}`;
  return { ...rule, name, variable, help, default: undefined, defaultText };
}

/** The same without a variable. */
export const flagOnly = <T>(option: Option<T>): Option<T> => ({ ...option, variable: undefined });

/** On where it is given; the environment variable takes `true` or `false`. */
export function toggle(name: string, help: string): Option<boolean> {
  const words: ReadonlyMap<string, boolean> = new Map([['true', true], ['false', false]]);
  return option(name, help, { placeholder: '', allowed: 'true or false', parse: (value) => words.get(value) }, 'false');
}

/** Values between commas, none of them by default; a repeated or empty one is refused. */
export function list(
  name: string, help: string, placeholder: string, allowed: string, accepts: (entry: string) => boolean,
): Option<readonly string[]> {
  const parse = (value: string): readonly string[] | undefined => {
    const entries = value.split(',').map((entry) => entry.trim());
    return entries.every(accepts) && new Set(entries).size === entries.length ? entries : undefined;
  };
  return { ...optional(name, help, { placeholder, allowed, parse }), default: [] };
}

export function text(
  placeholder: string, allowed = 'a text that is not empty', pattern = /^[^\0\r\n]+$/,
): Rule<string> {
  return { placeholder, allowed, parse: (value) => (pattern.test(value) ? value : undefined) };
}

export function choice<const V extends string>(values: readonly V[]): Rule<V> {
  const parse = (value: string): V | undefined => values.find((candidate) => candidate === value);
  return { placeholder: values.join('|'), allowed: `one of ${values.join(', ')}`, parse };
}

export function integer(placeholder: string, min: number, max: number): Rule<number> {
  return quantity(placeholder, 'a whole number', { '': 1 }, String(min), String(max));
}

/** A length of time such as `90s`, `15m`, `12h` or `7d`; the value is in seconds. */
export function duration(min: string, max: string): Rule<number> {
  return quantity('DURATION', 'a duration', { s: 1, m: 60, h: 3600, d: 86_400 }, min, max);
}

/** A number of bytes such as `512KiB` or `1MiB`. */
export function size(min: string, max: string): Rule<number> {
  return quantity('SIZE', 'a size', { B: 1, KiB: 1024, MiB: 1024 ** 2 }, min, max);
}

function quantity(
  placeholder: string, what: string, units: Readonly<Record<string, number>>, min: string, max: string,
): Rule<number> {
  const amount = (value: string): number => {
    const [, digits, unit = ''] = /^(\d{1,15})([A-Za-z]{0,3})$/.exec(value) ?? [];
    return Number(digits) * (units[unit] ?? NaN);
  };
  const names = Object.keys(units).filter((name) => name !== '');
  const allowed = `${what} from ${min} to ${max}${names.length === 0 ? '' : ` in ${names.join(', ')}`}`;
  const parse = (value: string): number | undefined =>
    amount(value) >= amount(min) && amount(value) <= amount(max) ? amount(value) : undefined;
  return { placeholder, allowed, unit: names[0], parse };
}

/** A serialised web origin, as browsers send it: scheme, host, and a port where it is not the scheme's own. */
export function isOrigin(value: string): boolean {
  return /^https?:\/\//.test(value) && URL.canParse(value) && new URL(value).origin === value;
}
