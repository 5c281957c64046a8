/** V8 gives each character of a text two bytes where one of them needs these. */
const wide = /[^\0-\xff]/;

/** More than any record has that this program wrote. Far beyond it, no JSON can be written. */
export const levelsMax = 64;

/**
 * Returns about how much memory a value takes, in bytes: as much, or up to twice as much. Small
 * integers often lie in the place of a pointer, but not where other records have fractions.
 * Returns `Infinity` for a value that is nested more than `levelsMax` deep. `sizeOfNames` counts
 * names of members that are not there once for all records.
 */
export function sizeOf(
  value: unknown,
  sizeOfNames?: (names: Names) => number,
  levels = levelsMax,
): number {
  if (typeof value === 'string') return 24 + value.length * (wide.test(value) ? 2 : 1);
  if (typeof value === 'number') return (value | 0) === value ? 8 : 20;
  if (!isObject(value)) return 0;
  if (levels === 0) return Infinity;
  let size = 64;
  if (Array.isArray(value)) {
    // An array of numbers alone contains them.
    for (const each of value) {
      size += 8 + (typeof each === 'number' ? 8 : sizeOf(each, sizeOfNames, levels - 1));
    }
    return size;
  }
  const names = Object.keys(value);
  for (const name of names) size += 8 + sizeOf(value[name], sizeOfNames, levels - 1);
  return size + (sizeOfNames?.(names) ?? dictionaryBytes(names));
}

type Names = readonly string[];

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null;

/** V8 reads an object with more names as a dictionary, else as one of a class that it shares. */
const sharedNamesMax = 128;
const dictionaryBytes = ({ length }: Names): number => (length > sharedNamesMax ? 64 * length : 0);

/**
 * Returns what names take of which no other object may have the same: each its text, and a place
 * in a dictionary or a class of objects. Small whole numbers, which come first and ascend, may
 * instead be places of an array that has half as many more.
 */
export function sizeOfOwnNames(names: Names): number {
  let size = 96;
  let places = 0;
  for (const name of names) {
    size += 96 + sizeOf(name);
    const place = Number(name);
    const isNear = place >= places && place < Math.min(places + emptyPlacesMax, placesMax);
    if (isNear && Number.isInteger(place)) places = 1.5 * place + 16;
  }
  return size + 8 * Math.ceil(places);
}

/** An array that V8 makes longer by more, or beyond this length with few values, it makes a dictionary. */
const emptyPlacesMax = 1024;
const placesMax = 5000;
