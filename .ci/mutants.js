/**
 * Puts faults into the source, one at a time, and runs the tests that should catch each: `npm run mutants`. It is not
 * part of CI. A fault that no test catches is printed with its place: either a test is missing, or the fault has no
 * visible effect. The kinds of faults and the files are below; the seed chooses the places.
 *
 *     npm run mutants -- --count 200 --seed 7       other places
 *     npm run mutants -- auth/jws                   all places of one file
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const project = join(import.meta.dirname, '..');

/** The most important files, and the tests that should notice a fault in them, fastest first. */
const covered = {
  'auth/jws': ['auth/jws', 'auth/tokens'],
  'auth/claims': ['auth/tokens', 'auth/jws'],
  'auth/tokens': ['auth/tokens', 'auth/refresh', 'api/sign-in'],
  'auth/keys': ['auth/keys', 'auth/tokens'],
  'auth/secrets': ['auth/sessions', 'auth/refresh', 'accounts/accounts', 'api/sessions'],
  'auth/access': ['api/access', 'api/roles', 'api/whose', 'api/setters', 'api/access-matrix'],
  'auth/throttle': ['auth/throttle', 'api/sign-in'],
  'api/authenticate': [
    'api/sign-in',
    'api/keys',
    'api/sessions',
    'http/fields',
    'api/access-matrix',
  ],
  'api/pipeline': [
    'api/bodies',
    'api/media',
    'api/keys',
    'api/sign-in',
    'api/conditional',
    'api/api',
  ],
  'accounts/sessions': ['accounts/accounts', 'api/sessions', 'auth/refresh', 'auth/sessions'],
  'accounts/sign-in': ['api/sign-in', 'accounts/accounts', 'auth/throttle'],
  'accounts/users': [
    'api/api',
    'accounts/accounts',
    'api/secrets',
    'api/access',
    'api/user-references',
  ],
  'collections/reader': ['api/whose', 'api/owners', 'lists/list', 'api/whose-chance'],
  'collections/resource': [
    'api/whose',
    'api/owners',
    'api/ids',
    'api/setters',
    'api/nested',
    'api/references',
  ],
  'collections/idempotency': ['api/idempotency'],
  'lists/query': ['lists/list-query', 'api/lists', 'api/pages'],
  'lists/order': ['lists/order', 'api/lists', 'lists/list'],
  'http/preconditions': ['http/preconditions', 'api/conditional'],
  'http/cross-site': ['http/fields', 'api/sign-in'],
  'options/local/local': ['api/local'],
  'store/writer': ['store/writer', 'store/store', 'store/thrown', 'store/faults'],
  'store/memory/transaction': [
    'store/faults',
    'store/store',
    'store/thrown',
    'store/record-index',
    'api/references',
  ],
  'store/memory/table': ['store/store', 'store/record-index', 'store/memory', 'api/ids'],
  'store/format/journal': ['store/recovery', 'store/store', 'store/editions', 'store/crash'],
  'store/format/snapshot': [
    'store/snapshot',
    'store/recovery',
    'store/editions',
    'store/first-edition',
  ],
  'store/disk/file-log': ['store/faults', 'store/store', 'store/log', 'store/crash'],
  'store/recovery/recover': ['store/recovery', 'store/crash', 'store/settle'],
};

/** The kinds of faults: a pattern on a line, and its replacement. */
const faults = [
  ['the opposite is compared', / === /, ' !== '],
  ['the opposite is compared', / !== /, ' === '],
  ['a bound is off by one', / < /, ' <= '],
  ['a bound is off by one', / <= /, ' < '],
  ['a bound is off by one', / > /, ' >= '],
  ['a bound is off by one', / >= /, ' > '],
  ['one condition is enough', / && /, ' || '],
  ['all conditions are demanded', / \|\| /, ' && '],
  ['a condition is reversed', /\bif \(!/, 'if ('],
  ['a check is left out', /^ +if \(.*\) (?:throw|return)\b.*;$/, ''],
  ['a check is left out', /^ +(?:check|authorize|refuse)\w*\(.*\);$/, ''],
  ['an error is passed over', /^ +throw .*;$/, ''],
  ['a step is left out', /^ +(?:await )?(?:this\.|[a-z]\w*\.)[\w.#]+\(.*\);$/, ''],
  ['a change is left out', /^ +(?:this\.)?[\w.#]+ [-+]?= [^;]*;$/, ';'],
  ['yes becomes no', /return true;/, 'return false;'],
  ['no becomes yes', /return false;/, 'return true;'],
  ['the smaller becomes the larger', /Math\.min\(/, 'Math.max('],
  ['the larger becomes the smaller', /Math\.max\(/, 'Math.min('],
  ['one is not added', / \+ 1\b/, ''],
  ['one is not subtracted', / - 1\b/, ''],
];

/** Lines whose faults have no visible effect, by file, with the reason. */
const harmless = {
  'auth/jws': [
    ['if (own !== undefined) return [own];', 'a short cut: the header is parsed otherwise'],
  ],
  'lists/order': [['last = found[count - 1];', 'a short cut: more records are sorted otherwise']],
};

const { values, positionals } = parseArgs({
  options: { count: { type: 'string', default: '120' }, seed: { type: 'string', default: '1' } },
  allowPositionals: true,
});

/** Returns each place of a file where a kind of fault fits. */
function placesIn(file) {
  const lines = readFileSync(join(project, 'src', `${file}.ts`), 'utf8').split('\n');
  return lines.flatMap((line, at) => {
    // Comments and types have no effect at run time.
    if (
      /^\s*(?:\/\/|\*|\/\*|import|export (?:type|interface)|type |interface |readonly )/.test(line)
    )
      return [];
    if (harmless[file]?.some(([text]) => text === line.trim())) return [];
    const code = line.replace(/ \/\/ .*/, '');
    return faults.flatMap(([what, wanted, instead]) => {
      const changed = code.replace(wanted, instead);
      return wanted.test(code) && !/=>\s*$/.test(changed)
        ? [{ file, at, what, line, changed }]
        : [];
    });
  });
}

/** Numbers from a seed, each from 0 up to 1 (Mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Chooses `count` places, from each file its share. */
function choose(places, count, random) {
  const byFile = group(places);
  const chosen = [];
  while (chosen.length < count && byFile.size > 0)
    for (const [file, left] of byFile) {
      if (left.length === 0) byFile.delete(file);
      else if (chosen.length < count)
        chosen.push(...left.splice(Math.floor(random() * left.length), 1));
    }
  return chosen;
}

function group(places) {
  const byFile = new Map();
  for (const place of places) byFile.set(place.file, [...(byFile.get(place.file) ?? []), place]);
  return byFile;
}

/** Runs test files in the copy until one fails, and returns that one. */
function failing(copy, tests) {
  return tests.find((test) => {
    const words = ['--import', 'tsx', '--test', '--test-timeout=60000', `test/${test}.test.ts`];
    const options = { cwd: copy, stdio: 'ignore', timeout: 180_000, killSignal: 'SIGKILL' };
    return spawnSync(process.execPath, words, options).status !== 0;
  });
}

const files = Object.keys(covered).filter(
  (file) => positionals.length === 0 || positionals.some((word) => file.includes(word)),
);
const count = positionals.length === 0 ? Number(values.count) : Infinity;
const chosen = choose(files.flatMap(placesIn), count, randomFrom(Number(values.seed)));
const copy = mkdtempSync(join(tmpdir(), 'cairn-mutants-'));
let passed = 0;
try {
  for (const name of ['src', 'test', '.ci', 'data', 'package.json', 'tsconfig.json', 'README.md'])
    cpSync(join(project, name), join(copy, name), { recursive: true });
  symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'));
  const needed = new Set(files.flatMap((file) => covered[file]));
  const broken = [...needed].filter((test) => failing(copy, [test]) !== undefined);
  if (broken.length > 0)
    process.stderr.write(`These fail without a fault, and show nothing: ${broken.join(', ')}\n`);
  for (const [index, { file, at, what, line, changed }] of chosen.entries()) {
    const path = join(copy, 'src', `${file}.ts`);
    const source = readFileSync(path, 'utf8');
    writeFileSync(path, source.split('\n').with(at, changed).join('\n'));
    const by = failing(
      copy,
      covered[file].filter((test) => !broken.includes(test)),
    );
    writeFileSync(path, source);
    if (by === undefined) passed += 1;
    const result = by === undefined ? 'PASSED' : `caught by ${by}`;
    const place = `src/${file}.ts:${at + 1}`;
    process.stdout.write(`${index + 1}/${chosen.length} ${place} ${what}: ${result}\n`);
    if (by === undefined) process.stdout.write(`    - ${line.trim()}\n    + ${changed.trim()}\n`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
process.stdout.write(`${chosen.length - passed} of ${chosen.length} faults were caught\n`);
process.exitCode = passed === 0 ? 0 : 1;
