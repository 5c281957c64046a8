import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../.support/cli/spawn.ts';
import { projectDirectory } from '../.support/source.ts';

/** The lines of the table of parts: each with the folder that it loads. */
const table = readFileSync(join(projectDirectory, 'src/app/parts.ts'), 'utf8');
const lines = [...table.matchAll(/^ {2}\w+: \(\) => import\('\.\.\/((?:options|features)\/[\w-]+)\/.*\n/gm)];

/** Parts that commands alone use. They go with the file of these commands, and with the line that loads it. */
const ofCommands = [['options/transfer', 'transfer'], ['options/offline', 'data']] as const;

test('without any of its parts, each removed with its one line, the rest compiles and serves', (t) => {
  assert.ok(lines.length >= 5);
  const copy = temporaryDirectory(t);
  for (const entry of ['src', 'test', 'package.json', 'tsconfig.json', 'README.md']) {
    cpSync(join(projectDirectory, entry), join(copy, entry), { recursive: true });
  }
  symlinkSync(join(projectDirectory, 'node_modules'), join(copy, 'node_modules'), 'junction');
  for (const [, folder = ''] of lines) rmSync(join(copy, 'src', folder), { recursive: true });
  writeFileSync(join(copy, 'src/app/parts.ts'), lines.reduce((text, [line]) => text.replace(line, ''), table));
  let families = readFileSync(join(projectDirectory, 'src/cli/commands.ts'), 'utf8');
  for (const [folder, family] of ofCommands) {
    rmSync(join(copy, 'src', folder), { recursive: true });
    rmSync(join(copy, `src/cli/${family}.ts`));
    families = families.replace(`    import('./${family}.ts'),\n`, '');
  }
  writeFileSync(join(copy, 'src/cli/commands.ts'), families);
  const kept = ['features', 'options'].flatMap((floor) => readdirSync(join(copy, 'src', floor)));
  assert.deepEqual(kept, [], 'all parts are removed');
  const run = (...words: readonly string[]): void => {
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: copy, encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  };
  run('node_modules/typescript/bin/tsc', '-p', 'tsconfig.json');
  run('--import', 'tsx', '--test', 'test/.api/media.test.ts');
});
