/**
 * Returns a function that finds the word of `known` that is most similar to a word;
 * `undefined` if none is similar. Each search looks only at the pairs of characters that
 * words share, however many words there are.
 */
export function nearestOf(known: Iterable<string>): (word: string) => string | undefined {
  const words = [...new Set(known)].map((word) => ({ word, size: pairsOf(word).size }));
  /** The places in `words` of the words that have a pair. */
  const places = new Map<string, number[]>();
  for (const [place, { word }] of words.entries()) {
    for (const pair of pairsOf(word)) {
      const having = places.get(pair);
      if (having === undefined) places.set(pair, [place]);
      else having.push(place);
    }
  }
  return (word) => {
    const pairs = pairsOf(word);
    const shared = new Uint32Array(words.length);
    for (const pair of pairs) {
      for (const place of places.get(pair) ?? []) shared[place] = (shared[place] ?? 0) + 1;
    }
    let best: string | undefined;
    let bestLikeness = likenessMin;
    for (const [place, candidate] of words.entries()) {
      const likeness = (2 * (shared[place] ?? 0)) / (pairs.size + candidate.size);
      if (likeness > bestLikeness) [best, bestLikeness] = [candidate.word, likeness];
    }
    return best;
  };
}

/** Returns the word of `known` that is most similar to `word`. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  return nearestOf(known)(word);
}

/** Returns the end of a message about an unknown word: the known one that is most similar. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
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
