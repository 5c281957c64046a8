/**
 * The first segments of the server's own paths, and the names of its tables. A test compares them.
 */
const names: readonly string[] = ['livez', 'readyz', 'idempotency-keys'];
const namesWithUsers: readonly string[] = [
  ...names,
  ...['status', 'changes', 'users', 'login', 'logout', 'tokens', 'me', 'dashboard', 'sessions'],
  ...['keys', 'api-keys', 'apiKeys'],
];

/**
 * Returns the names that collections cannot have. Without users, `yieldedPaths` are allowed, but
 * served only with a dialect.
 */
export const takenNames = (users = true): readonly string[] => (users ? namesWithUsers : names);
