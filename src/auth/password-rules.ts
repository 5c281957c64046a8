import type { Issue } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { commonPasswords } from './common-passwords.ts';

/** The person whose password it is. What is known about people is not secret. */
export interface PasswordOwner {
  readonly name: string;
  readonly email: string;
}

/**
 * What is wrong with a new password: its length, or that it is among the first that anyone would try (NIST SP 800-63B
 * §3.1.1.2). No rule asks for kinds of characters.
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
    return [issue('too_common', 'must not be a common password, a repetition, or your name or e-mail address')];
  }
  return [];
}

/**
 * The password in the form that is hashed and checked: one form for what looks the same on every keyboard
 * (RFC 8265 §4.2.2, OpaqueString), which is NFC with ASCII spaces. NFKC would make different characters equal, and
 * shorten what was chosen. A password that stays too long anyway is returned as it is, because normalisation takes the
 * square of the number of combining marks in a row.
 */
export function normalisePassword(password: string): string {
  if (Buffer.byteLength(password) > limits.passwordBytesMax * 3) return password;
  return password.replace(/\p{Zs}/gu, ' ').normalize('NFC');
}

const issue = (code: string, detail: string): Issue => ({ pointer: '/password', code, detail });

/** What `text` repeats twice or more, perhaps with something between: `pass-` for `pass-pass`. Else `text` itself. */
function repeatedUnit(text: string): string {
  for (let length = 1; 2 * length <= text.length + 1; length += 1) {
    if (text.startsWith(text.slice(length))) return text.slice(0, length);
  }
  return text;
}

/** Whether `text` is a common password, or one with digits and signs added to it: `P4ssw0rd-2024!` is `password`. */
function isCommon(text: string): boolean {
  const [core = ''] = /\p{L}(?:.*\p{L})?/su.exec(text) ?? [];
  const spelled = core.replace(/[013457@$!]/g, (sign) => letterFor[sign] ?? sign);
  const words = text.replace(/[^\p{L} ]+/gu, '').trim();
  return [text, spelled, words].some((form) => commonPasswords.has(repeatedUnit(form)));
}

const letterFor: Readonly<Record<string, string>> = {
  '0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '@': 'a', $: 's', '!': 'i',
};

/** Whether hardly a letter of `text` is left without its owner's names and address. */
function isOwnName(text: string, { name, email }: PasswordOwner): boolean {
  const known = `${name.slice(0, knownLengthMax)} ${email.slice(0, knownLengthMax)}`.normalize('NFC').toLowerCase();
  const parts = known.split(/[^\p{L}\p{N}]+/u).filter((part) => part.length >= 3);
  const rest = parts.reduce((left, part) => left.replaceAll(part, ''), text);
  return rest !== text && rest.replace(/\P{L}+/gu, '').length < 3;
}

/** Code units of a name or an address that are looked at, since the work grows with each. */
const knownLengthMax = 400;
