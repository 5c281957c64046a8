/** First segments of the server's own paths, and names of its tables. A test holds them. */
const names: readonly string[] = ['livez', 'readyz', 'idempotency-keys'];
const namesWithUsers: readonly string[] = [
  ...names,
  ...['status', 'changes', 'users', 'login', 'logout', 'tokens', 'me', 'dashboard', 'sessions'],
  ...['keys', 'api-keys', 'apiKeys'],
];

/**
 * Returns the names that no collection can have. Without users it may also be called as one of
 * `yieldedPaths`, but is served then only with a dialect.
 */
export const takenNames = (users = true): readonly string[] => (users ? namesWithUsers : names);
