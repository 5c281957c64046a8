import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { projectDirectory } from '../../test/support/source.ts';

const tsc = join(projectDirectory, 'node_modules', '.bin', 'tsc');
const skip = !existsSync(tsc) && 'needs the compiler, which checks what the guide shows';
const guide = readFileSync(join(projectDirectory, 'src', 'docs', 'guide.md'), 'utf8');

test('the service in the guide compiles, passes its tests and serves', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  const entrance = join(import.meta.dirname, '..', '..', 'src', `index${extname(import.meta.filename)}`);
  const files = [...guide.matchAll(/^```ts\n(\/\/ ([\w.]+)\n.*?)^```$/gms)].map(([, code = '', name = '']) => {
    writeFileSync(join(directory, name), code);
    return name;
  });
  assert.deepEqual(files, ['collections.ts', 'service.ts', 'service.test.ts', 'main.ts']);
  assert.ok(guide.split('\n').length <= 190, 'it is one page');
  assert.ok(guide.includes('programs.md#embedding'));
  const own = join(directory, 'node_modules', 'cairn-api');
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, 'package.json'), JSON.stringify({ type: 'module', exports: './index.js' }));
  writeFileSync(join(own, 'index.js'), `export * from ${JSON.stringify(entrance)};\n`);
  symlinkSync(join(projectDirectory, 'node_modules', '@types'), join(directory, 'node_modules', '@types'));
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({
    compilerOptions: {
      strict: true, exactOptionalPropertyTypes: true, noEmit: true, target: 'es2023', lib: ['esnext'],
      module: 'nodenext', types: ['node'],
      allowImportingTsExtensions: true, erasableSyntaxOnly: true,
      paths: { 'cairn-api': [join(projectDirectory, 'src', 'index.ts')] },
    },
    files,
  }));
  const compiled = spawnSync(tsc, ['-p', directory], { encoding: 'utf8' });
  assert.equal(compiled.stdout, '');
  // As the guide says: plain from Node.js 24 on, and with tsx before.
  const nodes = (process.env['CAIRN_NODES'] ?? '').split(':').filter((path) => /node2[4-9]/.test(path));
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    await serves(t, directory, signal, process.execPath, '--import', import.meta.resolve('tsx'));
  for (const node of nodes) await serves(t, directory, 'SIGTERM', node);
});

async function serves(
  t: TestContext,
  directory: string,
  signal: NodeJS.Signals,
  ...[node = '', ...flags]: string[]
): Promise<void> {
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined, PORT: '0', ADMIN_PASSWORD: 'correct horse battery' };
  const options = { cwd: directory, encoding: 'utf8', env } as const;
  const tested = spawnSync(node, [...flags, '--test', '--test-reporter=tap', 'service.test.ts'], options);
  assert.match(tested.stdout, /^# pass 1$[^]*^# fail 0$/m, tested.stdout + tested.stderr);
  const server = spawn(node, [...flags, 'main.ts'], options);
  t.after(() => server.kill('SIGKILL'));
  let output = '';
  for await (const chunk of server.stdout) {
    output += String(chunk);
    const [, address = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/ shows/.exec(output) ?? [];
    if (address === '' || server.killed) continue;
    assert.equal(await fetch(`${address}/slots`).then((response) => response.text()), '[]');
    server.kill(signal);
  }
  const [status] = server.exitCode === null ? await once(server, 'exit') : [server.exitCode];
  assert.equal(status, 0, output);
  assert.ok(existsSync(join(directory, 'data')));
  rmSync(join(directory, 'data'), { recursive: true });
}
