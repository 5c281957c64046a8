/**
 * Security events of accounts, credentials and sessions. Their details never contain a
 * secret.
 */
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
  'invitation_made',
  'key_made',
  'key_removed',
  'keys_rotated',
] as const;
export type AuditEvent = (typeof auditEvents)[number];

export type Audit = (
  event: AuditEvent,
  details: Readonly<Record<string, string | number | boolean | undefined>>,
) => void;
