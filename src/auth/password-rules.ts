import type { Issue } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { commonPasswords } from './common-passwords.ts';

/** Passwords with fewer different characters are guessed quickly. */
const varietyMin = 5;

/**
 * Finds what is wrong with a new password: its length, or that it is easy to guess (NIST SP 800-63B
 * §3.1.1.2). No rule requires certain kinds of characters.
 */
export function passwordIssues(given: string, email: string, lengthMin: number): Issue[] {
  const password = normalisePassword(given);
  if (Buffer.byteLength(password) > limits.passwordBytesMax) {
    return [issue('too_long', `must be at most ${limits.passwordBytesMax} bytes long`)];
  }
  if ([...password].length < lengthMin) {
    return [issue('too_short', `must be at least ${lengthMin} characters long`)];
  }
  const text = password.toLowerCase();
  const unit = repeatedUnit(text);
  // Digits and signs around a common word do not make it better.
  const [core = ''] = /\p{L}(?:.*\p{L})?/su.exec(text) ?? [];
  const isVaried = new Set(text).size >= varietyMin && unit.length >= lengthMin;
  const isCommon = [text, core].some((form) => commonPasswords.has(repeatedUnit(form)));
  if (isVaried && !isCommon && !isOwnAddress(text, email)) return [];
  const detail = 'must not be a common password, a few characters repeated, or your e-mail address';
  return [issue('too_common', detail)];
}

/**
 * Returns the form of a password that is hashed and checked: NFC with ASCII spaces (RFC 8265
 * §4.2.2, OpaqueString), so that the same characters from different keyboards are equal. NFKC would
 * make different characters equal, and weaken the password.
 *
 * A password that is far too long is returned unchanged, because normalization takes time quadratic
 * in the number of consecutive combining marks.
 */
export function normalisePassword(password: string): string {
  if (Buffer.byteLength(password) > limits.passwordBytesMax * 3) return password;
  return password.replace(/\p{Zs}/gu, ' ').normalize('NFC');
}

const issue = (code: string, detail: string): Issue => ({
  pointer: '/password',
  code,
  detail,
});

/** Returns the unit that `text` repeats, such as `pass-` for `pass-pass`, or `text` itself. */
function repeatedUnit(text: string): string {
  for (let length = 1; 2 * length <= text.length + 1; length += 1) {
    if (text.startsWith(text.slice(length))) return text.slice(0, length);
  }
  return text;
}

const isOwnAddress = (text: string, email: string): boolean =>
  email !== '' && text.includes(email.toLowerCase());
