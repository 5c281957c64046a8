/** Returns the word of `known` that looks most like `word`; `undefined` where none looks like it. */
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

/** Of Dice's coefficient, which is 1 for the same pairs and 0 where no pair is shared. */
const likenessMin = 0.4;

/** The pairs of neighbouring characters, the beginning and the end among them. */
function pairsOf(word: string): Set<string> {
  const framed = ` ${word.toLowerCase()} `;
  return new Set(Array.from({ length: framed.length - 1 }, (_, index) => framed.slice(index, index + 2)));
}
