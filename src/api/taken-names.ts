/**
 * The first segments of the server's own paths, and its tables' names. A test compares them with
 * both.
 */
const names: readonly string[] = ['livez', 'readyz', 'idempotency-keys'];
const namesWithUsers: readonly string[] = [
  ...names,
  ...['status', 'changes', 'users', 'login', 'logout', 'tokens', 'me', 'dashboard', 'sessions'],
  ...['keys', 'api-keys', 'apiKeys'],
];

/**
 * Returns the names that a collection cannot have. Without users, the other names may be declared,
 * but only a dialect serves those among `yieldedPaths`.
 */
export const takenNames = (users = true): readonly string[] => (users ? namesWithUsers : names);
