/**
 * Bundles the types of the package: the declarations that `src/index.ts` exports, and the unexported ones that their
 * types refer to. So `dist/index.d.ts` reveals no other internals, and serves both `require` and `import`.
 * `interface.test.ts` lists both.
 *
 * It relies on the format of tsc's declarations: each begins in the first column after its comment, and all type names
 * are capitalized; constants are referred to by `typeof`, or as the name of a member in brackets. A name with two
 * meanings, or an inferred type, is an error.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const declaration =
  /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|function|const) (\w+)/;
const link = /^(?:import|export)(?: type)? \{(.*)\} from '(.*)';$/;

/** The names in a text, except in comments, strings and members. */
function namesIn(text) {
  const code = text.replace(/\/\*.*?\*\//gs, '').replace(/'[^'\n]*'|"[^"\n]*"/g, '""');
  const found = code.matchAll(
    /(?<![.\w])(?:(?:typeof (\w+)|([A-Z]\w*))(?!\w|\??:)|\[([a-z]\w*)\]\??:)/g,
  );
  return new Set(Array.from(found, ([, constant, type, symbol]) => constant ?? type ?? symbol));
}

/** Reads a file of declarations: their texts, and the sources of other names. */
function read(path) {
  const declared = new Map();
  const taken = new Map();
  let comment = '';
  let name = '';
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [, names = '', from] = link.exec(line) ?? [];
    for (const one of names.matchAll(/(?:type )?(\w+)/g)) taken.set(one[1], from);
    const [, begun = ''] = declaration.exec(line) ?? [];
    const isComment = /^( ?\/?\*)/.test(line);
    if (isComment) comment = line.startsWith('/**') ? `${line}\n` : `${comment}${line}\n`;
    else if (begun !== '') declared.set(begun, `${comment}${line}\n`);
    else if (name !== '' && /^[ \]})|]/.test(line))
      declared.set(name, `${declared.get(name)}${line}\n`);
    else if (!/^(?:import |export (?:type )?\{|\/\/\/|$)/.test(line))
      throw new Error(`${path}: "${line}"`);
    if (isComment || begun !== '') name = begun;
    if (!isComment) comment = '';
  }
  return { path, declared, taken };
}

/** Returns everything that the types exported by `index` reach: names with their files and texts, and foreign names. */
export function declarationsOf(index) {
  const files = new Map();
  const fileOf = (path) => files.get(path) ?? files.set(path, read(path)).get(path);
  const reached = new Map();
  const outside = new Map();
  const reach = (name, { path, declared, taken }) => {
    const from = taken.get(name);
    if (from?.startsWith('.'))
      return reach(name, fileOf(join(dirname(path), from.replace(/ts$/, 'd.ts'))));
    if (from !== undefined) return outside.set(name, from);
    const known = reached.get(name);
    if (known !== undefined && (known.path !== path || !declared.has(name)))
      throw new Error(`${name} means two things: in ${path} and in ${known.path}`);
    if (known !== undefined || !declared.has(name)) return undefined;
    const text = declared.get(name);
    if (text.includes('import(')) throw new Error(`${path}: ${name} has an inferred type`);
    reached.set(name, { path, text });
    for (const inner of namesIn(text)) reach(inner, fileOf(path));
    return undefined;
  };
  const { taken } = fileOf(index);
  for (const name of taken.keys()) reach(name, fileOf(index));
  return { reached, outside, exported: [...taken.keys()] };
}

/** Returns the text of the one file. */
export function bundled(index) {
  const { reached, outside, exported } = declarationsOf(index);
  const imports = Array.from(
    outside,
    ([name, from]) => `import type { ${name} } from '${from}';\n`,
  );
  const text = Array.from(reached, ([name, { text }]) => {
    const isExported = exported.includes(name);
    return text.replace(
      /^(?:export )?(?=declare|interface|type|class)/m,
      isExported ? 'export ' : '',
    );
  });
  return `/// <reference types="node" />\n${imports.join('')}${text.join('')}export {};\n`;
}
