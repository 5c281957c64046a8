/** V8 gives each character of a text two bytes if one of them needs these. */
const wide = /[^\0-\xff]/;

/** More than any record has that this program wrote. Far beyond it, no JSON can be written. */
export const levelsMax = 64;

/**
 * Estimates from its JSON how much memory a value takes, in bytes: at least as much as V8 needs, and
 * at most ten times as much. Returns `Infinity` for a value that is nested more than `levelsMax` deep.
 */
export function estimateSize(value: unknown, levels = levelsMax): number {
  if (typeof value === 'string') return 24 + value.length * (wide.test(value) ? 2 : 1);
  // A small integer lies in the place of a pointer, if the other records have no fraction there.
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
  // All records have the same names, but the objects in them may have their own.
  return size + (levels === levelsMax ? dictionaryBytes(names.length) : sizeOfNames(names));
}

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null;

/** V8 makes an object with more than 128 names a dictionary. */
const dictionaryBytes = (names: number): number => (names > 128 ? 64 * names : 0);

/** Each name has a text, and a place in a dictionary or a hidden class. */
function sizeOfNames(names: readonly string[]): number {
  let size = 96 + 8 * arrayLength(names);
  for (const name of names) size += 96 + estimateSize(name);
  return size;
}

/**
 * V8 keeps small whole numbers, which come first and ascend, as places of an array that has half as
 * many more. `{"1000":1}` takes 12 KB.
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
