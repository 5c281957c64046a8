/** Copies of the project without some of its parts: each goes with its folder and its one line. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryDirectory } from './cli/spawn.ts';
import { projectDirectory } from './source.ts';

interface Part {
  /** What is removed, below `src`. */
  readonly paths: readonly string[];
  /** The file, below `src`, that loads it by this line. */
  readonly file: string;
  readonly line: string;
}

const table = readFileSync(join(projectDirectory, 'src/app/parts.ts'), 'utf8');
const lines = [...table.matchAll(/^ {2}\w+: \(\) => import\('\.\.\/((?:options|features)\/[\w-]+)\/.*\n/gm)];
const served = lines.map(([line, folder = '']): Part => ({ paths: [folder], file: 'app/parts.ts', line }));
/** Parts that commands alone use go with the file of these commands. */
const ofCommands = [['options/transfer', 'transfer'], ['options/offline', 'data']].map(([folder = '', name]): Part =>
  ({ paths: [folder, `cli/${name}.ts`], file: 'cli/commands.ts', line: `    import('./${name}.ts'),\n` }));

export const parts: readonly Part[] = [...served, ...ofCommands];

/** Makes a copy without `removed`, shows that the rest compiles and serves, and returns its directory. */
export function tryWithout(t: TestContext, removed: readonly Part[]): string {
  const copy = temporaryDirectory(t);
  for (const entry of ['src', 'test', 'package.json', 'tsconfig.json', 'README.md']) {
    cpSync(join(projectDirectory, entry), join(copy, entry), { recursive: true });
  }
  symlinkSync(join(projectDirectory, 'node_modules'), join(copy, 'node_modules'), 'junction');
  for (const { paths, file, line } of removed) {
    for (const path of paths) rmSync(join(copy, 'src', path), { recursive: true });
    const text = readFileSync(join(copy, 'src', file), 'utf8');
    assert.ok(text.includes(line), `${file} has the line ${line}`);
    writeFileSync(join(copy, 'src', file), text.replace(line, ''));
  }
  for (const words of [
    ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'],
    ['--import', 'tsx', '--test', 'test/.api/media.test.ts'],
  ]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: copy, encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  }
  return copy;
}
