import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** The top of the project, whatever the working directory is, and also where the tests run from a build below it. */
export const projectDirectory = topOf(import.meta.dirname);

/** The README and the pages of the manual. */
export const pages = ['README.md', ...filesBelow('src/docs', '.md')];

/** Their text. */
export const handbook = pages.map((page) => readFileSync(join(projectDirectory, page), 'utf8')).join('\n');

function topOf(directory: string): string {
  const isTop = ['README.md', 'package.json'].every((name) => existsSync(join(directory, name)));
  return isTop ? directory : topOf(dirname(directory));
}

/** One source file: its path from the top with `/`, its text, and its code without comments and literals. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly code: string;
  /** What it imports, as written: from `import`, from `export … from`, and from `import()`. */
  readonly imports: readonly string[];
}

/** The files below `directory` whose names end in `extension`, in order. Those of `src` are without the examples. */
export function filesBelow(directory: string, extension: string): string[] {
  if (!existsSync(join(projectDirectory, directory))) return [];
  return readdirSync(join(projectDirectory, directory), { recursive: true, encoding: 'utf8' })
    .map((name) => posix.join(directory, name.replaceAll('\\', '/')))
    .filter((path) => path.endsWith(extension) && (directory !== 'src' || !path.startsWith('src/docs/')))
    .sort();
}

export function readSource(path: string): SourceFile {
  const text = readFileSync(join(projectDirectory, path), 'utf8');
  const found = text.matchAll(/^(?:import|export)\b[^;]*?\bfrom '([^']+)'|(?:^import |\bimport\()'([^']+)'/gm);
  const imports = Array.from(found, ([, from, loaded = '']) => from ?? loaded);
  return { path, text, code: withoutLiterals(text), imports };
}

const either = (...patterns: readonly RegExp[]): RegExp =>
  new RegExp(patterns.map(({ source }) => source).join('|'), 'g');

const comment = /\/\*[^]*?\*\/|\/\/[^\n]*/;
const string = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/;
/** Prettier puts a space behind a slash that divides, and none behind one that begins a regular expression. */
const regularExpression = /\/(?! )(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/;
/** `${…}`, in which there may be strings, templates and braces, but none of these in one another. */
const interpolation = /\$\{((?:'[^']*'|`(?:\$\{[^{}]*\}|[^`$])*`|\{[^{}]*\}|[^{}`'])*)\}/;
const template = new RegExp(`\`(?:\\\\.|${interpolation.source}|[^\`\\\\])*\``);
const literal = either(comment, string, regularExpression, template);

/**
 * `text` with spaces in the place of comments, strings, templates and regular expressions, so that a rule about code
 * never trips over prose. Code in `${…}` stays. Offsets and line numbers stay the same.
 */
export function withoutLiterals(text: string): string {
  return text.replace(literal, (found) => {
    if (!found.startsWith('`')) return blank(found);
    let code = '';
    for (const { index, 1: inner = '' } of found.matchAll(either(interpolation))) {
      code += blank(found.slice(code.length, index + '${'.length)) + withoutLiterals(inner);
    }
    return code + blank(found.slice(code.length));
  });
}

const blank = (text: string): string => text.replace(/[^\n]/g, ' ');

/** What counts as one token: a name, a number, a string, an operator, else a character. */
const token = either(
  /[A-Za-z_$#][\w$]*|\d[\w.]*/,
  /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/,
  /=>|\?\?=?|[&|]{2}=?|[=!]==?|\.{3}|\?\.|\S/,
);

/** The size of code in tokens, which neither its format nor its comments change. */
export function tokensOf(text: string): number {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/[^\n]*/g, '');
  return code.match(token)?.length ?? 0;
}
