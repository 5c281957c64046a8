/**
 * One option of the command line: what it takes, what it means, and how its text becomes a value. The same
 * declaration makes the flag, the environment variable, the help, the check and the README's list.
 */
export interface Option<T> {
  /** The flag without its dashes; in capitals behind `CAIRN_` it is the environment variable. */
  readonly name: string;
  /** Only on the command line: it belongs to one use of a command and not to an installation. */
  readonly flagOnly?: boolean;
  /** A switch stands alone on the command line; anything else takes a value. */
  readonly kind: 'switch' | 'value';
  /** The value's name in the help, such as `PORT`. */
  readonly placeholder: string;
  /** What is allowed, to follow "must be". */
  readonly allowed: string;
  readonly default: T;
  /** The default as a person would type it; empty where there is none. */
  readonly defaultText: string;
  /** What it is for: one sentence without a full stop. */
  readonly help: string;
  /** `undefined`: the text is not allowed. */
  readonly parse: (text: string) => T | undefined;
}

/** Something is wrong with how Cairn was called; `message` is one line that names the option and what is allowed. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export function text<D extends string | undefined>(
  name: string, help: string, placeholder: string, fallback: D,
  allowed = 'a text that is not empty', pattern = /^[^\0\r\n]+$/,
): Option<string | D> {
  const parse = (value: string): string | undefined => (pattern.test(value) ? value : undefined);
  return { name, kind: 'value', placeholder, allowed, default: fallback, defaultText: fallback ?? '', help, parse };
}

export function choice<V extends string, D extends V | undefined>(
  name: string, help: string, values: readonly V[], fallback: D, defaultText: string = fallback ?? '',
): Option<V | D> {
  const parse = (value: string): V | undefined => values.find((candidate) => candidate === value);
  const allowed = `one of ${values.join(', ')}`;
  return { name, kind: 'value', placeholder: values.join('|'), allowed, default: fallback, defaultText, help, parse };
}

export function integer<D extends number | undefined>(
  name: string, help: string, placeholder: string, min: number, max: number, fallback: D,
): Option<number | D> {
  const parse = (value: string): number | undefined =>
    /^\d{1,15}$/.test(value) ? within(Number(value), min, max) : undefined;
  const defaultText = fallback === undefined ? '' : String(fallback);
  const allowed = `a whole number from ${min} to ${max}`;
  return { name, kind: 'value', placeholder, allowed, default: fallback, defaultText, help, parse };
}

const secondsPerUnit: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const bytesPerUnit: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2 };

/** A length of time such as `90s`, `15m`, `12h` or `7d`; the value is in seconds. */
export function duration(name: string, help: string, min: string, max: string, fallback: string): Option<number> {
  return quantity(name, help, 'DURATION', 'a duration', secondsPerUnit, [min, max, fallback]);
}

/** A number of bytes such as `512KiB` or `1MiB`. */
export function size(name: string, help: string, min: string, max: string, fallback: string): Option<number> {
  return quantity(name, help, 'SIZE', 'a size', bytesPerUnit, [min, max, fallback]);
}

function quantity(
  name: string, help: string, placeholder: string, what: string, units: Readonly<Record<string, number>>,
  [min, max, fallback]: readonly [string, string, string],
): Option<number> {
  const amount = (value: string): number => {
    const match = /^(\d{1,9})([A-Za-z]{1,3})$/.exec(value);
    return Number(match?.[1]) * (units[match?.[2] ?? ''] ?? NaN);
  };
  const parse = (value: string): number | undefined => within(amount(value), amount(min), amount(max));
  const allowed = `${what} from ${min} to ${max} in ${Object.keys(units).join(', ')}, such as ${fallback}`;
  const fallbackAmount = amount(fallback);
  return { name, kind: 'value', placeholder, allowed, default: fallbackAmount, defaultText: fallback, help, parse };
}

/** On where it is given; the environment variable takes `true` or `false`. */
export function toggle(name: string, help: string): Option<boolean> {
  const parse = (value: string): boolean | undefined => {
    if (value === 'true') return true;
    return value === 'false' ? false : undefined;
  };
  const allowed = 'true or false';
  return { name, kind: 'switch', placeholder: '', allowed, default: false, defaultText: '', help, parse };
}

/** Values between commas; a repeated or empty one is refused. */
export function list(
  name: string, help: string, placeholder: string, allowed: string, accepts: (entry: string) => boolean,
): Option<readonly string[]> {
  const parse = (value: string): readonly string[] | undefined => {
    const entries = value.split(',').map((entry) => entry.trim());
    return entries.every(accepts) && new Set(entries).size === entries.length ? entries : undefined;
  };
  return { name, kind: 'value', placeholder, allowed, default: [], defaultText: '', help, parse };
}

/** A serialised web origin, as browsers send it: scheme, host, and a port where it is not the scheme's own. */
export function isOrigin(value: string): boolean {
  return /^https?:\/\//.test(value) && URL.canParse(value) && new URL(value).origin === value;
}

/** The same option, without its environment variable. */
export function flagOnly<T>(option: Option<T>): Option<T> {
  return { ...option, flagOnly: true };
}

function within(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined;
}
