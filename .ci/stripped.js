/**
 * Checks with a second compiler that `dist` is the source without its types: Node.js 24 only blanks them out. esbuild
 * prints both sides anew, so that white space, comments and quotes are alike.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { transformSync } from 'esbuild';

process.chdir(join(import.meta.dirname, '..'));

const filesOf = (folder, ending) =>
  readdirSync(folder, { recursive: true }).filter(
    (path) => path.endsWith(ending) && !path.endsWith('.d.ts') && !path.startsWith('docs'),
  );

const scriptOf = (path) => path.replace(/ts$/, 'js');
const read = (...path) => readFileSync(join(...path), 'utf8');

/** tsc marks a module that imports and exports nothing. */
const print = (code) =>
  transformSync(code, { minifyWhitespace: true }).code.replace(/export\{\};\n$/, '\n');

function stripped(path) {
  const code = stripTypeScriptTypes(read('src', path));
  return code.replace(/((?:\bfrom|\bimport\(?) ?'[.][^']*[.])ts'/g, "$1js'");
}

const compiled = filesOf('src', '.ts').map((path) => [
  scriptOf(path),
  print(stripped(path)),
  print(read('dist', scriptOf(path))),
]);
const copied = filesOf('src', '.js').map((path) => [path, read('src', path), read('dist', path)]);
const all = [...compiled, ...copied];
const known = new Set(all.map(([path]) => path));
const wrong = [
  ...all
    .filter(([, expected, built]) => expected.trim() !== built.trim())
    .map(([path]) => `dist/${path} differs`),
  ...filesOf('dist', '.js')
    .filter((path) => !known.has(path))
    .map((path) => `dist/${path} has no source`),
];
process.stdout.write(
  [...wrong, `${all.length} files compared, ${wrong.length} wrong`, ''].join('\n'),
);
process.exitCode = wrong.length === 0 && all.length > 0 ? 0 : 1;
