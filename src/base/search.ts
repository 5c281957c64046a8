/**
 * Returns the index of the first element that passes; the length if there is none. All that
 * follow it must pass, too.
 */
export function firstIndex<T>(elements: readonly T[], passes: (element: T) => boolean): number {
  let [low, high] = [0, elements.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const element = elements[middle];
    if (element !== undefined && passes(element)) high = middle;
    else low = middle + 1;
  }
  return low;
}
