/**
 * Binary search: returns the index of the first element that passes, or the length if there is
 * none. Every later element must pass as well.
 */
export function firstIndex<T>(elements: readonly T[], passes: (element: T) => boolean): number {
  let low = 0;
  let high = elements.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const element = elements[middle];
    if (element !== undefined && passes(element)) high = middle;
    else low = middle + 1;
  }
  return low;
}
