/**
 * The proofs of a release, with their full counts: `npm run proofs`. Each is one torture file (or some of its tests)
 * with its counts, in order. `.proofs` records what has passed at this commit, so that an interrupted run continues.
 * `CAIRN_TEST_SEED` chooses other histories. Takes hours; see the table in the reference. `npm run proofs -- quick`
 * takes a hundredth of the counts, to try this script.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));

const seed = process.env.CAIRN_TEST_SEED ?? '1';
const part = process.argv[2] === 'quick' ? 100 : 1;
const proofs = [
  [
    'store',
    {
      CAIRN_CRASH_STATES: 128_000,
      CAIRN_KILL_CYCLES: 1000,
      CAIRN_LOCK_RACES: 1000,
      CAIRN_HISTORIES: 200,
    },
  ],
  ['thrown', { CAIRN_THROWN_TRANSACTIONS: 200_000 }],
  ['retries', { CAIRN_RETRY_KILLS: 1000 }],
  ['http-fuzz', { CAIRN_FUZZ_REQUESTS: 100_000 }],
  ['whose-kills', { CAIRN_KEY_KILLS: 200 }],
  ['import', { CAIRN_IMPORT_KILLS: 200 }],
  ['changes', { CAIRN_FEED_CUTS: 1000 }],
  ['whose.torture', { CAIRN_WHOSE_QUESTIONS: 1_000_000 }],
  ['merge-patch', { CAIRN_MERGE_PATCHES: 100_000 }],
  ['orders', { CAIRN_TEST_HISTORIES: 3000 }],
  ['cluster.torture', { CAIRN_CLUSTER_OPERATIONS: 200_000, CAIRN_NODE_KILLS: 30 }],
  ['cluster-servers', {}],
  ['cluster-etcd', {}],
  ['cluster-mutants', {}],
  ['lists', {}],
  ['system-calls', {}],
  ['sign-in-timing', {}],
  ['http-shutdown', {}],
  ['http-overload', {}],
];

const { stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' });
const kept = join('.proofs', `${stdout.trim()}-${seed}${part === 1 ? '' : '-quick'}.jsonl`);
mkdirSync('.proofs', { recursive: true });
const lines = existsSync(kept)
  ? readFileSync(kept, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
  : [];
const passed = new Set(lines.map((line) => JSON.parse(line).name));

const built = spawnSync(process.execPath, ['.ci/build.js', 'dist'], { stdio: 'inherit' });
let failures = built.status === 0 ? 0 : 1;
for (const [name, counts] of failures > 0 ? [] : proofs) {
  if (passed.has(name)) continue;
  const given = Object.entries(counts).map(([key, count]) => [
    key,
    String(Math.ceil(count / part)),
  ]);
  const begun = Date.now();
  const { status, stdout: output } = spawnSync(
    process.execPath,
    ['.ci/suite.js', 'torture', name],
    {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...Object.fromEntries(given), CAIRN_TEST_SEED: seed },
    },
  );
  const seconds = Math.round((Date.now() - begun) / 1000);
  const told = output
    .split('\n')
    .filter((line) =>
      /^# (?!Subtest|tests |suites|pass |fail |cancelled|skipped 0|todo|duration)/.test(line),
    );
  process.stdout.write(
    `\n== ${name}: ${status === 0 ? 'passed' : 'FAILED'} in ${seconds} s\n${told.join('\n')}\n`,
  );
  if (status === 0)
    lines.push(JSON.stringify({ name, ...Object.fromEntries(given), seconds, told }));
  else process.stdout.write(output);
  writeFileSync(kept, lines.map((line) => `${line}\n`).join(''));
  failures += status === 0 ? 0 : 1;
}
process.stdout.write(
  `\n${failures === 0 ? 'All proofs have passed' : `${failures} failed`}; seed ${seed}; ${kept}\n`,
);
process.exitCode = failures === 0 ? 0 : 1;
