/**
 * Returns the word of `known` that is most similar to `word`; `undefined` if none is
 * similar.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const pairs = pairsOf(word);
  let best: string | undefined;
  let bestLikeness = likenessMin;
  for (const candidate of known) {
    const others = pairsOf(candidate);
    const shared = [...pairs].filter((pair) => others.has(pair)).length;
    const likeness = (2 * shared) / (pairs.size + others.size);
    if (likeness > bestLikeness) [best, bestLikeness] = [candidate, likeness];
  }
  return best;
}

/**
 * The least Dice coefficient of similar words: 1 means equal pairs, 0 means no shared
 * pair.
 */
const likenessMin = 0.4;

/**
 * Returns the pairs of neighbouring characters. The beginning and the end count as
 * characters.
 */
function pairsOf(word: string): Set<string> {
  const framed = ` ${word.toLowerCase()} `;
  return new Set(
    Array.from({ length: framed.length - 1 }, (_, index) => framed.slice(index, index + 2)),
  );
}
