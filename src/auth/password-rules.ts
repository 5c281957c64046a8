import type { Issue } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { commonPasswords } from './common-passwords.ts';

/** What is known about the user of a password, and so makes a weak password. */
interface PasswordOwner {
  readonly name: string;
  readonly email: string;
}

/**
 * Finds issues of a new password: its length, and whether it is easy to guess (NIST SP
 * 800-63B §3.1.1.2). No rule requires certain kinds of characters.
 */
export function passwordIssues(given: string, owner: PasswordOwner, lengthMin: number): Issue[] {
  const password = normalisePassword(given);
  if (Buffer.byteLength(password) > limits.passwordBytesMax) {
    return [issue('too_long', `must be at most ${limits.passwordBytesMax} bytes long`)];
  }
  if ([...password].length < lengthMin) {
    return [issue('too_short', `must be at least ${lengthMin} characters long`)];
  }
  const text = password.toLowerCase();
  if (repeatedUnit(text).length < lengthMin || isCommon(text) || isOwnName(text, owner)) {
    return [
      issue(
        'too_common',
        'must not be a common password, a repetition, or your name or e-mail address',
      ),
    ];
  }
  return [];
}

/**
 * Returns the form of a password that is hashed and checked: NFC with ASCII spaces (RFC
 * 8265 §4.2.2, OpaqueString), so that the same characters from different keyboards are
 * equal. NFKC would make different characters equal, and weaken the password. A password
 * that is much too long is returned as it is, because normalisation takes time quadratic
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

/**
 * Returns the unit that `text` repeats, such as `pass-` for `pass-pass`; else `text`
 * itself.
 */
function repeatedUnit(text: string): string {
  for (let length = 1; 2 * length <= text.length + 1; length += 1) {
    if (text.startsWith(text.slice(length))) return text.slice(0, length);
  }
  return text;
}

/**
 * Whether `text` is a common password, perhaps with digits and signs: `P4ssw0rd-2024!`.
 */
function isCommon(text: string): boolean {
  const [core = ''] = /\p{L}(?:.*\p{L})?/su.exec(text) ?? [];
  const spelled = core.replace(/[013457@$!]/g, (sign) => letterFor[sign] ?? sign);
  const words = text.replace(/[^\p{L} ]+/gu, '').trim();
  return [text, spelled, words].some((form) => commonPasswords.has(repeatedUnit(form)));
}

const letterFor: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
};

/** Whether `text` has fewer than three letters besides its owner's name and address. */
function isOwnName(text: string, { name, email }: PasswordOwner): boolean {
  const known = `${name.slice(0, knownLengthMax)} ${email.slice(0, knownLengthMax)}`
    .normalize('NFC')
    .toLowerCase();
  const parts = known.split(/[^\p{L}\p{N}]+/u).filter((part) => part.length >= 3);
  const rest = parts.reduce((left, part) => left.replaceAll(part, ''), text);
  return rest !== text && rest.replace(/\P{L}+/gu, '').length < 3;
}

/** Code units of a name or an address that are compared, to bound the work. */
const knownLengthMax = 400;
