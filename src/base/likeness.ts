/** Returns a suggestion, for the end of a message, if a known word is similar. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
}

/**
 * Returns the word of `known` most similar to `word`, by the Dice coefficient of neighbouring pairs
 * of characters, if it is more than 0.48.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const pairs = splitIntoPairs(word);
  let best: string | undefined;
  let bestLikeness = 0.48;
  for (const candidate of known) {
    const others = splitIntoPairs(candidate);
    const shared = [...others].filter((pair) => pairs.has(pair)).length;
    const likeness = (2 * shared) / (pairs.size + others.size);
    if (likeness > bestLikeness) [best, bestLikeness] = [candidate, likeness];
  }
  return best;
}

/** The beginning and the end count as characters. */
function splitIntoPairs(word: string): Set<string> {
  const framed = ` ${word.toLowerCase()} `;
  return new Set(
    Array.from({ length: framed.length - 1 }, (_, index) => framed.slice(index, index + 2)),
  );
}
