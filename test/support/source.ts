import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** The top of the project, whatever the working directory is, and also where the tests run from a build below it. */
export const projectDirectory = topOf(import.meta.dirname);

/** The README and the pages of the manual. */
export const listPages = (): string[] => ['README.md', ...listFiles('src/docs', '.md')];

let read: string | undefined;
/** Their text, which is read once it is needed. */
export function readHandbook(): string {
  read ??= listPages().map((page) => readFileSync(join(projectDirectory, page), 'utf8')).join('\n');
  return read;
}

function topOf(directory: string): string {
  const isTop = ['README.md', 'package.json'].every((name) => existsSync(join(directory, name)));
  return isTop ? directory : topOf(dirname(directory));
}

/** One source file: its path from the top with `/`, its text, and its code without comments and literals. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly code: string;
  /** Its imports, as written: by `import`, `export … from` and `import()`. */
  readonly imports: readonly string[];
}

/** The files below `directory` whose names end in `extension`, in order; of `src`, without the examples. */
export function listFiles(directory: string, extension: string): string[] {
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
  return { path, text, code: removeLiterals(text), imports };
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
export function removeLiterals(text: string): string {
  return text.replace(literal, (found) => {
    if (!found.startsWith('`')) return blank(found);
    let code = '';
    for (const { index, 1: inner = '' } of found.matchAll(either(interpolation))) {
      code += blank(found.slice(code.length, index + '${'.length)) + removeLiterals(inner);
    }
    return code + blank(found.slice(code.length));
  });
}

const blank = (text: string): string => text.replace(/[^\n]/g, ' ');

/** One token: a name, a number, a string or an operator; otherwise one character. */
const token = either(
  /[A-Za-z_$#][\w$]*|\d[\w.]*/,
  /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/,
  /=>|\?\?=?|[&|]{2}=?|[=!]==?|\.{3}|\?\.|\S/,
);

/** The size of code in tokens, which neither its format nor its comments change. */
export function countTokens(text: string): number {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/[^\n]*/g, '');
  return code.match(token)?.length ?? 0;
}

/** The floors of the source, and the picture of them in the manual. */

/**
 * The house: a file imports from a lower floor or from its own room. A room is one of these folders with all that is
 * below it, or one part of the options or features; rooms on one floor do not know each other. The store's inner rooms
 * are held by the test for cycles.
 */
const floors: Readonly<Record<string, number>> = {
  'src/base': 1,
  'src/schema': 2,
  'src/http': 2,
  'src/auth': 2,
  'src/store': 2,
  'src/collections': 3,
  'src/lists': 3,
  'src/accounts': 4,
  'src/api': 5,
  'src/web': 6,
  'src/config': 6,
  'src/log': 6,
  'src/options': 7,
  'src/features': 7,
  'src/app': 8,
  'src/cli': 9,
  'src/programs': 9,
  src: 10,
};

/** Parts that are loaded only if they are used. */
export const parts = /^src\/(options|features)\/./;

/** `src/store` for `src/store/disk/files.ts`, and `src/options/cluster` for what is below it. */
export function toRoom(path: string): string {
  return posix.dirname(path).split('/').slice(0, parts.test(path) ? 3 : 2).join('/');
}

export function findFloor(room: string): number | undefined {
  return floors[parts.test(room) ? posix.dirname(room) : room];
}

export function resolveImport(file: SourceFile, specifier: string): string {
  return posix.join(posix.dirname(file.path), specifier);
}

export function listImports(file: SourceFile | undefined): string[] {
  if (file === undefined) return [];
  return file.imports.flatMap((specifier) => (specifier.startsWith('.') ? [resolveImport(file, specifier)] : []));
}

const purposes: Readonly<Record<string, string>> = {
  'src': 'the command, the package',
  'src/cli': 'commands',
  'src/programs': 'apps in programs',
  'src/app': 'puts it together',
  'src/options': 'can be switched on',
  'src/features': 'can be left out',
  'src/web': 'the page',
  'src/config': 'flags, variables',
  'src/log': 'lines',
  'src/api': 'routes and operations of HTTP',
  'src/accounts': 'users and sessions',
  'src/collections': 'records and access',
  'src/lists': 'filters, sorting, pages',
  'src/schema': 'fields',
  'src/http': 'connections',
  'src/auth': 'credentials',
  'src/store': 'memory and disk',
  'src/base': 'errors, limits, clock, JSON',
};

/** The picture of src/docs/architecture.md: a box for each folder, a line for each folder that it imports. */
export function drawFloors(): string {
  const [width, rowHeight, boxHeight, gap] = [860, 72, 44, 14];
  const highest = Math.max(...Object.values(floors));
  const boxes = new Map(Object.entries(floors).map(([folder, floor]) => {
    const row = Object.keys(floors).filter((each) => floors[each] === floor);
    const boxWidth = Math.min(300, (width - gap * (row.length + 1)) / row.length);
    const left = (width - row.length * boxWidth - (row.length - 1) * gap) / 2;
    const x = Math.round(left + row.indexOf(folder) * (boxWidth + gap));
    return [folder, { x, y: gap + (highest - floor) * rowHeight, width: Math.round(boxWidth) }];
  }));
  const lines = new Set<string>();
  for (const file of listFiles('src', '.ts').map(readSource)) {
    for (const target of listImports(file)) {
      const boxOf = (path: string) => boxes.get(posix.dirname(path).split('/').slice(0, 2).join('/'));
      const [from, to] = [boxOf(file.path), boxOf(target)];
      if (!from || !to || from.y >= to.y) continue;
      const [startX, endX] = [from.x + from.width / 2, to.x + to.width / 2];
      lines.add(`<path d="M${startX} ${from.y + boxHeight}L${endX} ${to.y}"/>`);
    }
  }
  const rooms = Array.from(boxes, ([folder, { x, y, width: boxWidth }]) => {
    const middle = x + boxWidth / 2;
    return `<rect x="${x}" y="${y}" width="${boxWidth}" height="${boxHeight}" rx="6"/>` +
      `<text x="${middle}" y="${y + 18}" class="name">${folder}</text>` +
      `<text x="${middle}" y="${y + 34}">${purposes[folder]}</text>`;
  });
  const height = highest * rowHeight;
  const style = 'svg{font:12px system-ui,sans-serif;text-anchor:middle}path{stroke:#8aa;stroke-opacity:.45}' +
    'rect{fill:#eef4f8;stroke:#357}text{fill:#234}.name{font-weight:600}';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<style>${style}</style><rect width="${width}" height="${height}" style="fill:#fff;stroke:none"/>`,
    ...[...lines].sort(), ...rooms, '</svg>', '',
  ].join('\n');
}
