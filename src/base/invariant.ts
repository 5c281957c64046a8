/** A broken invariant: a bug of Cairn's own, never something that input or the machine may cause. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Throws `InvariantError` with `message` unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Marks a place that the types show to be unreachable; a new member of a union stops the compiler here. */
export function unreachable(value: never): never {
  throw new InvariantError(`Cannot go on: unexpected ${JSON.stringify(value)}`);
}
