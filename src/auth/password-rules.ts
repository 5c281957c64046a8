import type { Issue } from '../base/errors.ts';
import { limits } from '../base/limits.ts';
import { commonWords } from './common-words.ts';

/** Whose password it is: what is known of them is not secret. */
export interface PasswordOwner {
  readonly name: string;
  readonly email: string;
}

/** What is wrong with a normalised password; nothing for a good one. No rule asks for kinds of characters. */
export function passwordIssues(password: string, owner: PasswordOwner, lengthMin: number): Omit<Issue, 'pointer'>[] {
  if ([...password].length < lengthMin) {
    return [{ code: 'too_short', detail: `must have at least ${lengthMin} characters` }];
  }
  if (Buffer.byteLength(password) > limits.passwordBytesMax) {
    return [{ code: 'too_long', detail: `must have at most ${limits.passwordBytesMax} bytes` }];
  }
  if (worth(password, [...partsOf(owner.name), ...partsOf(owner.email)]) < worthMin) {
    return [{ code: 'too_common', detail: 'must not be a common password, a pattern, or your name or e-mail' }];
  }
  return [];
}

/** Fewer unpredictable characters than this are common, whatever the length. */
const worthMin = 6;
/** There are about as many common words as pairs of letters, digits and signs. */
const wordWorth = 2;
/** Of what a guesser would try first anyway: own names, sequences, years, what stood before. */
const patternWorth = 1;

/** UTF-16 code units that are looked at: the work grows with their square, and holds up everybody else. */
const lookedAtMax = 256;
/** No sequence and no word of the list is longer. */
const pieceLengthMax = 40;

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
  const disguised = text.replace(/[013457890@$!|]/g, (character) => digitsAndSigns[character] ?? character);
  const repeats = repeatLengths(text);
  const cheapest = new Array<number>(text.length + 1).fill(Infinity);
  cheapest[0] = 0;
  for (let start = 0; start < text.length; start += 1) {
    const before = cheapest[start] ?? Infinity;
    const relax = (end: number, pieceWorth: number) => {
      cheapest[end] = Math.min(cheapest[end] ?? Infinity, before + pieceWorth);
    };
    relax(start + 1, 1);
    if (before + patternWorth >= worthMin) continue;
    const repeated = repeats[start] ?? 0;
    for (let end = start + 2; end <= start + repeated; end += 1) relax(end, patternWorth);
    for (let end = start + Math.max(3, repeated + 1); end <= Math.min(text.length, start + pieceLengthMax); end += 1) {
      relax(end, pieceWorth(text.slice(start, end), disguised.slice(start, end), ownWords));
    }
  }
  return cheapest[text.length] ?? Infinity;
}

function pieceWorth(piece: string, plain: string, ownWords: readonly string[]): number {
  if (ownWords.includes(piece) || ownWords.includes(plain)) return patternWorth;
  if (/^(19|20)\d\d$/.test(piece) || sequences.some((sequence) => sequence.includes(piece))) return patternWorth;
  return commonWords.has(piece) || commonWords.has(plain) ? wordWorth : Infinity;
}

/** How long a stretch from each index on stood earlier in the text. It may overlap itself: "aaaa" is "a" and 3 more. */
function repeatLengths(text: string): number[] {
  const longest = new Array<number>(text.length).fill(0);
  // common[earlier] is how far the text from `earlier` on agrees with the text from `index` on.
  const common = new Array<number>(text.length + 1).fill(0);
  for (let index = text.length - 1; index > 0; index -= 1) {
    let length = 0;
    for (let earlier = 0; earlier < index; earlier += 1) {
      common[earlier] = text[earlier] === text[index] ? (common[earlier + 1] ?? 0) + 1 : 0;
      length = Math.max(length, common[earlier] ?? 0);
    }
    longest[index] = length;
  }
  return longest;
}

function partsOf(known: string): string[] {
  const text = known.normalize('NFC').toLowerCase();
  return [text, ...text.split(/[^\p{L}\p{N}]+/u)].filter((part) => part.length >= 3);
}
