import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { lockedFlags, startProcess, temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { listFiles, projectDirectory } from '../../test/support/source.ts';
import { signInAndWrite } from './caller.ts';

/**
 * Runs the whole suite under the flags in the manual. Source and tests are built unchanged, and run in processes with
 * exactly these flags, plus permission to read their own files. There, the suite's apps are servers on loopback with
 * their data in files. A test file that starts processes cannot be locked down itself, but its servers are.
 */
const startsServers = [
  'test/cli/serve.test.ts', 'test/cli/standard-error.test.ts', 'test/cluster/commands.test.ts',
  'test/project/readme.test.ts',
];
const outside: Readonly<Record<string, string>> = {
  'test/store/crash.test.ts': 'has a simulated disk: nothing is asked of the system',
  'test/store/faults.test.ts': 'has a simulated disk: nothing is asked of the system',
  'test/store/import.test.ts': 'has a simulated disk: nothing is asked of the system',
  'test/store/histories.test.ts': 'has a simulated disk: nothing is asked of the system',
  'test/store/editions.test.ts': 'runs commands that write in other directories',
  'test/store/memory.test.ts': 'starts a process with little memory, without a server',
  'test/app/key-file.test.ts': 'changes modes, which a locked run may not',
  'test/api/full-disk.test.ts': 'mounts a file system of its own',
  'test/project/architecture.test.ts': 'reads the source: nothing is served',
  'test/cluster/alerts.test.ts': 'starts promtool, without a server',
  'test/project/bench.test.ts': 'starts the bench, without a server',
  'test/project/suite.test.ts': 'reads the tests: nothing is served',
  'test/project/examples.test.ts': 'starts the examples as a reader does, and their tests',
  'test/project/handbook.test.ts': 'reads the source: nothing is served',
  'test/project/handbook-trusted-path.test.ts': 'reads the source: nothing is served',
  'test/project/loaded.test.ts': 'asks for coverage, which is written outside of the data',
  'test/programs/docstrings.test.ts': 'starts the compiler, without a server',
  'test/project/interface.test.ts': 'starts the compiler, without a server',
  'test/programs/fake-timers.test.ts': 'replaces Date, which is frozen in a locked run',
  'test/web/assets.test.ts': 'reads the source: the page is served in test/api/pages.test.ts',
  'test/http/tls.test.ts': 'makes certificates by another program: TLS is served in test/cli/serve.test.ts',
};

const built = mkdtempSync(join(tmpdir(), 'cairn-locked-'));
after(() => rmSync(built, { recursive: true }));
const data = join(built, 'data');
const main = join(built, 'src', 'main.js');
const environment = { PATH: process.env['PATH'], CAIRN_TEST_LOCKED: 'true' };

mkdirSync(data);
for (const project of ['.', 'test']) {
  const compiler = join(projectDirectory, 'node_modules', 'typescript', 'bin', 'tsc');
  const words = ['-p', join(projectDirectory, project), '--noEmit', 'false', '--rootDir', projectDirectory];
  const { status, stdout } = spawnSync(process.execPath, [compiler, ...words, '--outDir', built], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
}
for (const path of ['package.json', 'README.md', 'src/docs', 'src/web']) {
  const isAsset = (name: string): boolean => !/\.(ts|json)$/.test(name) || name.endsWith('package.json');
  cpSync(join(projectDirectory, path), join(built, path), { recursive: true, filter: isAsset });
}
for (const path of listFiles('test', '.json')) cpSync(join(projectDirectory, path), join(built, path));
const flags = lockedFlags(join(built, 'src'), data);
const readable = ['test', 'README.md', 'package.json'];
const suiteFlags = [...flags, ...readable.map((path) => `--allow-fs-read=${join(built, path)}`)];

test('a locked server cannot reach what it does not need', () => {
  const attempts = {
    'another file': `await import('node:fs').then((fs) => fs.readFileSync('/etc/hostname'))`,
    'a link to all': `await import('node:fs').then((fs) => fs.readFileSync('/proc/self/root/etc/hostname'))`,
    'another process': `await import('node:fs').then((fs) => fs.readFileSync('/proc/1/stat'))`,
    'writing beside the data': `await import('node:fs').then((fs) => fs.writeFileSync(${JSON.stringify(main)}, ''))`,
    'a process': `await import('node:child_process').then((processes) => processes.spawnSync('true'))`,
    'a worker': `await import('node:worker_threads').then(({ Worker }) => new Worker('0', { eval: true }))`,
    'code of a string': `new Function('return 1')`,
    'an add-on': `process.dlopen({ exports: {} }, 'x.node')`,
    '__proto__': `({}).__proto__.x`,
    'a built-in': `Array.prototype.push = 1`,
  };
  for (const [what, attempt] of Object.entries(attempts)) {
    const code = `try { ${attempt}; console.log('done'); } catch (error) { console.log('refused'); }`;
    const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '--eval', code], {
      encoding: 'utf8',
    });
    assert.equal(stdout, 'refused\n', `${what}: ${stderr}`);
  }
});

test('a locked server reaches only its data directory', async (t) => {
  const itemsBySignal: number[] = [];
  for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM'] as const) {
    itemsBySignal.push(await serveAndWrite(t, [...flags, main, 'serve', '--data', data, '--port', '0'], signal));
  }
  assert.deepEqual(itemsBySignal, [1, 2, 3], 'each life finds what the ones before wrote, also after kill -9');
  assert.equal(readFileSync(join(data, 'items.json'), 'utf8').split('"Lamp"').length - 1, 3);

  const other = temporaryDirectory(t);
  const denied = spawnSync(process.execPath, [...flags, main, 'serve', '--data', other], { encoding: 'utf8' });
  assert.equal(denied.status, 74, 'another directory is out of reach');
  const refusal = /"message":"Cannot go on: [^"]*"[^"]*" is out of reach; the flags of this locked-down run /;
  assert.match(denied.stderr, refusal);
});

/** One life of a server: start, page, sign-in by token and cookie, write, end. Returns the number of items. */
async function serveAndWrite(t: TestContext, words: readonly string[], signal: NodeJS.Signals): Promise<number> {
  const server = startProcess(t, words);
  const [, base = ''] = await server.find(/Cairn serves (http:\/\/127\.0\.0\.1:\d+)/);
  assert.match(await (await fetch(`${base}/`)).text(), /^<!doctype html>/i);
  const items = await signInAndWrite(base, 'correct horse battery');
  server.child.kill('SIGHUP');
  await server.find(/notice","kind":"message","message":"Keys were read again"/);
  server.child.kill(signal);
  assert.equal(await server.ended, signal === 'SIGTERM' ? 0 : null, server.err);
  assert.equal(server.err, '');
  return items;
}

const suites = listFiles('test', '.test.ts');

test('every skipped suite exists and has a reason', () => {
  const named = [...startsServers, ...Object.keys(outside)];
  assert.deepEqual(named.filter((path) => !suites.includes(path)), []);
});

test('the whole suite passes locked down', { concurrency: 3 }, async (t) => {
  const runFiles = async (name: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<void> => {
    const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
      const options = { cwd: built, env, encoding: 'utf8', maxBuffer: 2 ** 28, timeout: 600_000 } as const;
      execFile(process.execPath, ['--test-reporter=tap', ...words], options, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, output: stdout + stderr }),
      );
    });
    const failed = output.split('\n').filter((line) => /^\s*(not ok|error:|.*Error)/.test(line)).slice(0, 20);
    assert.equal(code, 0, failed.join('\n') || output.slice(-2000));
    const count = (what: string): number => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1]);
    assert.ok(count('pass') > 0, output.slice(-500));
    t.diagnostic(`${name}: ${count('pass')} tests passed, ${count('skipped')} were skipped`);
  };
  const javascript = (path: string): string => path.replace(/ts$/, 'js');
  const own = startsServers.map((path) =>
    t.test(path, () => runFiles(path, [join(built, javascript(path))], environment)));
  // A locked process cannot start others, so test files are imported, a third of them in each process.
  const locked = suites.filter((path) => outside[path] === undefined && !startsServers.includes(path));
  const together = [0, 1, 2].map((third) => t.test(`third ${third + 1}`, () => {
    const program = join(built, `third-${third + 1}.js`);
    const imports = locked.filter((_, index) => index % 3 === third).map((path) => `import './${javascript(path)}';\n`);
    writeFileSync(program, imports.join(''));
    const env = { ...environment, TMPDIR: data };
    return runFiles(`third ${third + 1}`, [...suiteFlags, `--allow-fs-read=${program}`, program], env);
  }));
  await Promise.all([...own, ...together]);
});
