/**
 * Runs the test files of one kind: `test` (built into `.test` first, and run from there), or `browser`, `release` or
 * `torture` (run directly from `.ci`). Further words select files by path: `npm test -- http/tls`. For all kinds except
 * `test`, CAIRN_FAILED may name a file that collects failed test files; if it has any, only those run.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));

const [kind, ...words] = process.argv.slice(2);
const folder = kind === 'test' ? 'test' : `.ci/${kind}`;
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .map((path) => join(folder, path).replaceAll('\\', '/'))
  .filter(
    (path) =>
      path.endsWith(`.${kind}.ts`) &&
      (words.length === 0 || words.some((word) => path.includes(word))),
  )
  .sort();
if (files.length === 0) {
  process.stderr.write(
    `No test file's path ends in .${kind}.ts and contains ${words.join(' or ')}\n`,
  );
  process.exit(64);
}

/** Files that measure time run alone. The others mostly wait: two of them at a time. */
const measuring =
  /(balancers[.]release|(http-(costly|overload|shutdown)|lists|sign-in-timing)[.]torture|smooth[.]browser)[.]ts$/;

/** Folders whose files share a process in `npm test`. The others wait, start processes, or measure the heap. */
const sharing =
  /^test[/](accounts|api|app|auth|base|collections|lists|programs|schema|store(?![/]memory)|web)[/]/;

process.exitCode = kind === 'test' ? runBuilt() : runSources();

function runSources() {
  const failed = process.env.CAIRN_FAILED;
  const again = failed && existsSync(failed) ? readFileSync(failed, 'utf8').split('\n') : [];
  const chosen = files.filter((path) => again.includes(resolve(path)));
  // A test made by a helper counts as the helper's, so its file is unknown: then all run again.
  const isKnown = again.every((path) => path === '' || chosen.some((one) => resolve(one) === path));
  const tried = chosen.length > 0 && isKnown ? chosen : files;
  const statuses = [
    [tried.filter((path) => !measuring.test(path)), 2],
    [tried.filter((path) => measuring.test(path)), 1],
  ].map(([chosen, concurrency]) =>
    chosen.length === 0 ? 0 : runTests(['--import', 'tsx'], concurrency, chosen),
  );
  return Math.max(...statuses);
}

/** Without a loader each process starts faster; stacks still name the TypeScript. Removes its copy of the tests. */
function runBuilt() {
  const status = run(['.ci/build.js', '.test']);
  if (status !== 0) return status;
  const built = shareProcesses(files.map((path) => path.replace(/ts$/, 'js')));
  process.env.NODE_COMPILE_CACHE = resolve('.cache');
  try {
    return runTests(['--enable-source-maps', '--import', './.ci/limit.js'], 3, built);
  } finally {
    rmSync('.test', { recursive: true });
  }
}

/**
 * Starting a process and warming up its code takes longer than most tests, so one file imports all of a
 * folder: this saves a quarter of the processor time of a run.
 */
function shareProcesses(paths) {
  const entries = new Set();
  for (const path of paths) {
    const entry = sharing.test(path) ? `${dirname(path)}.test.js` : path;
    entries.add(join('.test', entry));
    if (entry === path) continue;
    const imported = `import './${basename(dirname(path))}/${basename(path)}';\n`;
    writeFileSync(join('.test', entry), imported, { flag: 'a' });
  }
  return [...entries];
}

/** People see the usual report. Piped output ends in the names of the failed tests. */
function runTests(flags, concurrency, paths) {
  const reporter = process.stdout.isTTY ? 'spec' : './.ci/report.js';
  const words = ['--test', `--test-concurrency=${concurrency}`, `--test-reporter=${reporter}`];
  return run([...flags, ...words, ...paths]);
}

function run(words) {
  return spawnSync(process.execPath, words, { stdio: 'inherit' }).status ?? 1;
}
