import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** The top of the project, whatever the working directory is, and also where the tests run from a build below it. */
export const projectDirectory = topOf(import.meta.dirname);

/** The text of the README and of the reference beside the source. */
export const handbook = ['README.md', 'src/README.md']
  .map((page) => join(projectDirectory, page))
  .filter(existsSync)
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');

function topOf(directory: string): string {
  return existsSync(join(directory, 'README.md')) ? directory : topOf(dirname(directory));
}

/** What counts as one token: a name, a number, a string, an operator, else a character. */
const token = new RegExp(
  [
    /[A-Za-z_$#][\w$]*|\d[\w.]*/,
    /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/,
    /=>|\?\?=?|[&|]{2}=?|[=!]==?|\.{3}|\?\.|\S/,
  ].map(({ source }) => source).join('|'),
  'g',
);

/** One source file: its path from the top with `/`, its text, and its code without comments and literals. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly code: string;
  readonly lineCount: number;
  /** What it imports, as written. */
  readonly imports: readonly string[];
}

/** The files below `directory` whose names end in `extension`, in order. */
export function filesBelow(directory: string, extension: string): string[] {
  if (!existsSync(join(projectDirectory, directory))) return [];
  return readdirSync(join(projectDirectory, directory), { recursive: true, encoding: 'utf8' })
    .map((name) => posix.join(directory, name.replaceAll('\\', '/')))
    .filter((path) => path.endsWith(extension))
    .sort();
}

export function readSource(path: string): SourceFile {
  const text = readFileSync(join(projectDirectory, path), 'utf8');
  const code = withoutLiterals(text);
  return { path, text, code, lineCount: text.split('\n').length - 1, imports: importsOf(text, code) };
}

/** Static, re-exporting and dynamic imports. Their specifiers are blank in `code`, and stand in `text` at one place. */
function importsOf(text: string, code: string): string[] {
  const specifiers: string[] = [];
  for (const match of code.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*(['"])/g)) {
    const start = match.index + match[0].length;
    specifiers.push(text.slice(start, text.indexOf(match[1] ?? '', start)));
  }
  return specifiers;
}

/**
 * `text` with the insides of comments, strings, templates and regular expressions replaced by spaces, so that a rule
 * about code never trips over prose. Code inside `${…}` stays. Offsets and line numbers stay the same.
 */
export function withoutLiterals(text: string): string {
  const out = text.split('');
  const blank = (from: number, to: number): void => {
    for (let i = from; i < to && i < out.length; i += 1) if (out[i] !== '\n') out[i] = ' ';
  };
  /** For each template that is open: how many braces are open in its current `${…}`. */
  const templates: number[] = [];
  let at = 0;
  while (at < text.length) {
    const character = text.charAt(at);
    const pair = text.slice(at, at + 2);
    let end = at + 1;
    if (pair === '//') {
      end = indexOrEnd(text, '\n', at);
      blank(at, end);
    } else if (pair === '/*') {
      end = indexOrEnd(text, '*/', at + 2) + 2;
      blank(at, end);
    } else if (character === '"' || character === "'") {
      end = closing(text, at + 1, character);
      blank(at + 1, end - 1);
    } else if (character === '/' && regexMayStart(out, at)) {
      end = closing(text, at + 1, '/');
      blank(at + 1, end - 1);
    } else if (character === '`' || (character === '}' && templates.at(-1) === 0)) {
      if (character === '}') templates.pop();
      end = closing(text, at + 1, '`', true);
      if (text.slice(end - 2, end) === '${') templates.push(0);
      blank(at + 1, end - (text.charAt(end - 1) === '`' ? 1 : 2));
    } else if (templates.length > 0 && (character === '{' || character === '}')) {
      templates.push((templates.pop() ?? 0) + (character === '{' ? 1 : -1));
    }
    at = end;
  }
  return out.join('');
}

function indexOrEnd(text: string, wanted: string, from: number): number {
  const found = text.indexOf(wanted, from);
  return found === -1 ? text.length : found;
}

/** The offset behind the unescaped `quote`, or behind `${` where `interpolates`; `/` may stand in a class. */
function closing(text: string, from: number, quote: string, interpolates = false): number {
  let inClass = false;
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '\\') at += 1;
    else if (quote === '/' && character === '[') inClass = true;
    else if (quote === '/' && character === ']') inClass = false;
    else if (character === quote && !inClass) return at + 1;
    else if (interpolates && character === '$' && text.charAt(at + 1) === '{') return at + 2;
  }
  return text.length;
}

/** A slash divides after a value and begins a regular expression after anything else. */
function regexMayStart(code: readonly string[], at: number): boolean {
  let before = at - 1;
  while (before >= 0 && /\s/.test(code[before] ?? '')) before -= 1;
  const last = code[before] ?? '';
  if (!/[\w$)\]}'"`]/.test(last)) return true;
  const word = /[\w$]+$/.exec(code.slice(Math.max(0, before - 10), before + 1).join(''))?.[0];
  return word === 'return' || word === 'typeof' || word === 'case' || word === 'in' || word === 'of';
}

/** The size of code in tokens, which neither its format nor its comments change. */
export function tokensOf(text: string): number {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/[^\n]*/g, '');
  return code.match(token)?.length ?? 0;
}
