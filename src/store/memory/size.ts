/** V8 gives each character of a text two bytes where one of them needs these. */
const wide = /[^\0-\xff]/;

/** More than any record has that this program wrote. Far beyond it, no JSON can be written. */
export const levelsMax = 64;

/**
 * Returns about how much memory a value takes, in bytes: as much, or up to twice as much. Small
 * integers often lie in the place of a pointer, but not where other records have fractions.
 * Returns `Infinity` for a value that is nested more than `levelsMax` deep.
 */
export function sizeOf(value: unknown, levels = levelsMax): number {
  if (typeof value === 'string') return 24 + value.length * (wide.test(value) ? 2 : 1);
  if (typeof value === 'number') return (value | 0) === value ? 8 : 20;
  if (!isObject(value)) return 0;
  if (levels === 0) return Infinity;
  let size = 64;
  if (Array.isArray(value)) {
    // An array of numbers alone contains them.
    for (const each of value) {
      size += 8 + (typeof each === 'number' ? 8 : sizeOf(each, levels - 1));
    }
    return size;
  }
  for (const name in value) size += 8 + sizeOf(value[name], levels - 1);
  return size;
}

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === 'object' && value !== null;
