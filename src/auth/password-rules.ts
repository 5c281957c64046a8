import type { Issue } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { commonWords } from './common-words.ts';

/** Whose password it is: what is known of them is not secret. */
export interface PasswordOwner {
  readonly name: string;
  readonly email: string;
}

/** What is wrong with a normalised password; nothing for a good one. No rule asks for kinds of characters. */
export function passwordIssues(password: string, owner: PasswordOwner, lengthMin: number): Issue[] {
  if (Buffer.byteLength(password) > limits.passwordBytesMax) {
    return [issue('too_long', `must have at most ${limits.passwordBytesMax} bytes`)];
  }
  if ([...password].length < lengthMin) {
    return [issue('too_short', `must have at least ${lengthMin} characters`)];
  }
  if (worth(password, [...partsOf(owner.name), ...partsOf(owner.email)]) < worthMin) {
    return [issue('too_common', 'must not be a common password, a pattern, or your name or e-mail')];
  }
  return [];
}

const issue = (code: string, detail: string): Issue => ({ pointer: '/password', code, detail });

/** Fewer unpredictable characters than this are common, whatever the length. */
const worthMin = 6;
/** There are about as many common words as pairs of letters, digits and signs. */
const wordWorth = 2;
/** Of what a guesser would try first anyway: own names, sequences, years, what stood before. */
const patternWorth = 1;

/** UTF-16 code units that are looked at, in all, at a time, and of what is known: the work grows with each. */
const lookedAtMax = 128;
const pieceLengthMax = 64;
const ownTextMax = 400;

const sequences = [
  'abcdefghijklmnopqrstuvwxyz',
  '012345678901234567890',
  'qwertyuiop[]',
  'asdfghjkl;',
  'zxcvbnm,./',
  'qwertzuiop',
  'yxcvbnm',
  'azertyuiop',
  'qsdfghjklm',
  '!@#$%^&*()',
  '1q2w3e4r5t6y7u8i9o0p',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/',
  'qazwsxedcrfvtgbyhnujmikolp',
].flatMap((sequence) => [sequence, [...sequence].reverse().join('')]);

const digitsAndSigns: Readonly<Record<string, string>> = {
  '0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '8': 'b', '9': 'g', '@': 'a', $: 's', '!': 'i', '|': 'l',
};

/**
 * How many unpredictable characters the password is worth: the cheapest way to put it together from left to right out
 * of common words, own names, patterns and single characters. Exact only below `worthMin`.
 */
function worth(password: string, ownWords: readonly string[]): number {
  const text = password.slice(0, lookedAtMax).toLowerCase();
  const plain = text.replace(/[013457890@$!|]/g, (character) => digitsAndSigns[character] ?? character);
  const cheapest = [0];
  for (let start = 0; start < text.length; start += 1) {
    const before = cheapest[start] ?? Infinity;
    const longest = before + patternWorth < worthMin ? pieceLengthMax : 1;
    for (let end = start + 1; end <= Math.min(text.length, start + longest); end += 1) {
      const isRepeated = end > start + 1 && text.indexOf(text.slice(start, end)) < start;
      const worth = isRepeated ? patternWorth : pieceWorth(text.slice(start, end), plain.slice(start, end), ownWords);
      cheapest[end] = Math.min(cheapest[end] ?? Infinity, before + worth);
    }
  }
  return cheapest[text.length] ?? Infinity;
}

function pieceWorth(piece: string, plain: string, ownWords: readonly string[]): number {
  if (piece.length < 3) return piece.length;
  if (ownWords.includes(piece) || ownWords.includes(plain)) return patternWorth;
  if (/^(19|20)\d\d$/.test(piece) || sequences.some((sequence) => sequence.includes(piece))) return patternWorth;
  return commonWords.has(piece) || commonWords.has(plain) ? wordWorth : Infinity;
}

function partsOf(known: string): string[] {
  const text = known.slice(0, ownTextMax).normalize('NFC').toLowerCase();
  return [text, ...text.split(/[^\p{L}\p{N}]+/u)].filter((part) => part.length >= 3);
}
