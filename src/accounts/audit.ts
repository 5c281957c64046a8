/** What can happen to accounts, credentials and sessions. A record of it never holds a secret. */
export const auditEvents = [
  'login',
  'login_failed',
  'login_throttled',
  'logout',
  'refresh_token_reused',
  'session_ended',
  'password_changed',
  'email_changed',
  'role_changed',
  'user_created',
  'user_removed',
  'keys_rotated',
] as const;
export type AuditEvent = (typeof auditEvents)[number];

/** Records an event. */
export type Audit = (
  event: AuditEvent,
  details: Readonly<Record<string, string | number | boolean | undefined>>,
) => void;
