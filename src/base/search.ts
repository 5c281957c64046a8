/**
 * Returns the index of the first element that passes; the length if there is none. All that
 * follow it must pass as well.
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

/** Returns the end of a message about an unknown word: the known one that is most similar. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
}

/**
 * Returns the word of `known` that is most similar to `word`: that with the greatest Dice
 * coefficient of pairs of neighbouring characters, if it is more than 0.4.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const pairs = splitIntoPairs(word);
  let best: string | undefined;
  let bestLikeness = 0.4;
  for (const candidate of known) {
    const others = splitIntoPairs(candidate);
    const shared = [...others].filter((pair) => pairs.has(pair)).length;
    const likeness = (2 * shared) / (pairs.size + others.size);
    if (likeness > bestLikeness) [best, bestLikeness] = [candidate, likeness];
  }
  return best;
}

/**
 * Returns the pairs of neighbouring characters. The beginning and the end count as
 * characters.
 */
function splitIntoPairs(word: string): Set<string> {
  const framed = ` ${word.toLowerCase()} `;
  return new Set(
    Array.from({ length: framed.length - 1 }, (_, index) => framed.slice(index, index + 2)),
  );
}
