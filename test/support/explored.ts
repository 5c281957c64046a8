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
