/**
 * Runs the test files of one kind: `test` (built into `.test` first, and run from there), or `browser`, `release`,
 * `torture` (run as they are). Further words choose those whose paths contain one: `npm test -- http/tls`.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));

const [kind, ...words] = process.argv.slice(2);
const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((path) => join('test', path).replaceAll('\\', '/'))
  .filter((path) => path.endsWith(`.${kind}.ts`) && (words.length === 0 || words.some((word) => path.includes(word))))
  .sort();
if (files.length === 0) {
  process.stderr.write(`No test file's path ends in .${kind}.ts and contains ${words.join(' or ')}\n`);
  process.exit(64);
}

process.exitCode = kind === 'test' ? runBuilt() : run(['--import', 'tsx', '--test', ...files]);

/**
 * Without a loader each process starts faster; its stacks still name the TypeScript. The files of a folder share a
 * process, which takes longer to start than most of them to run. Leaves no second copy of the tests.
 */
function runBuilt() {
  const status = run(['.ci/build.js', '.test']);
  if (status !== 0) return status;
  const folders = new Map();
  for (const path of files) folders.set(dirname(path), [...(folders.get(dirname(path)) ?? []), path]);
  const processes = Array.from(folders, ([folder, paths]) => {
    // One after the other, since a file may do much before its first test.
    const imports = paths.map((path) => `await import('./${path.replace(/ts$/, 'js')}');\n`);
    const file = join('.test', `${folder.replaceAll('/', '-')}.js`);
    writeFileSync(file, imports.join(''));
    return file;
  });
  try {
    return run(['--enable-source-maps', '--test', '--test-concurrency=3', ...processes]);
  } finally {
    rmSync('.test', { recursive: true });
  }
}

function run(args) {
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
}
