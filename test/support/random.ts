
/** Random numbers that can be had again: the seed is printed, and `CAIRN_TEST_SEED` sets it. */
export interface Generator {
  /** A whole number from 0 to `bound` - 1. */
  below(bound: number): number;
  pick<T>(choices: readonly T[]): T;
}

/** A generator of its own for each `use`, so that one test does not change what another one draws. */
export function generator(use: string, seed = process.env['CAIRN_TEST_SEED'] ?? '1'): Generator {
  console.log(`# ${use}: CAIRN_TEST_SEED=${seed}`);
  return numbersOf(`${use} ${seed}`);
}

/** The numbers that follow from a text. */
export function numbersOf(text: string): Generator {
  let state = 2166136261;
  for (const character of text) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 16777619);
  const below = (bound: number): number => {
    // Mulberry32: small, quick and good enough to shuffle tests.
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
  return {
    below,
    pick: (choices) => {
      const choice = choices[below(choices.length)];
      if (choice === undefined) throw new Error('Cannot pick from nothing');
      return choice;
    },
  };
}

/**
 * Does work with very many promises, and returns what gives its result or throws its error. It is called before a file
 * defines its first test: from then on the test runner watches each promise, which makes them several times as dear.
 */
export async function explored<Result>(work: () => Promise<Result>): Promise<() => Result> {
  const [outcome] = await Promise.allSettled([work()]);
  return () => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  };
}
