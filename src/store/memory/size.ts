/** V8 stores a text with two bytes for each character if one of them needs these. */
const wide = /[^\0-\xff]/;

/** More than any record that this program wrote. Far beyond it, JSON cannot be written. */
export const levelsMax = 64;

/**
 * Estimates the memory of a value in bytes: at least as much as V8 needs, and at most ten times as
 * much. Returns `Infinity` for a value nested more than `levelsMax` deep.
 */
export function estimateSize(value: unknown, levels = levelsMax): number {
  if (typeof value === 'string') return 24 + value.length * (wide.test(value) ? 2 : 1);
  // A small integer takes the place of a pointer, unless other records have fractions there.
  if (typeof value === 'number') return (value | 0) === value ? 8 : 20;
  if (!isObject(value)) return 0;
  if (levels === 0) return Infinity;
  let size = 64;
  if (Array.isArray(value)) {
    for (const each of value) size += 8 + estimateSize(each, levels - 1);
    return size;
  }
  const names = Object.keys(value);
  for (const name of names) size += 8 + estimateSize(value[name], levels - 1);
  // All records have the same names, but nested objects may have their own.
  return size + (levels === levelsMax ? dictionaryBytes(names.length) : sizeOfNames(names));
}

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null;

/** V8 keeps an object with more than 128 names as a dictionary. */
const dictionaryBytes = (names: number): number => (names > 128 ? 64 * names : 0);

/** Each name has a text, and an entry in a dictionary or a hidden class. */
function sizeOfNames(names: readonly string[]): number {
  let size = 96 + 8 * arrayLength(names);
  for (const name of names) size += 96 + estimateSize(name);
  return size;
}

/**
 * V8 stores members named by small whole numbers in an array with half as much again in reserve.
 * `{"1000":1}` takes 12 KB.
 */
function arrayLength(names: readonly string[]): number {
  let length = 0;
  for (const name of names) {
    const place = Number(name);
    if (!(place < Math.min(length + emptyPlacesMax, placesMax))) break;
    if (place >= length) length = Math.ceil(1.5 * place) + 16;
  }
  return length;
}

/** V8 makes an array a dictionary if it grows by more, or beyond this length with few values. */
const emptyPlacesMax = 1024;
const placesMax = 5000;
