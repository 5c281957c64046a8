import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { projectDirectory } from '../../test/support/source.ts';

/** Runs a command to its end; returns its output, or fails the test. */
export function run(directory: string, command: string, ...words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, words, {
    cwd: directory, encoding: 'utf8', shell: process.platform === 'win32',
  });
  assert.equal(status, 0, `${command} ${words.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

/** A clone of the project with its development packages installed. */
export function clone(directory: string): string {
  mkdirSync(directory);
  for (const entry of ['.ci', 'src', 'package.json', 'package-lock.json', 'tsconfig.json', 'README.md']) {
    cpSync(join(projectDirectory, entry), join(directory, entry), { recursive: true });
  }
  symlinkSync(join(projectDirectory, 'node_modules'), join(directory, 'node_modules'), 'junction');
  return directory;
}

export interface Packed {
  readonly file: string;
  readonly names: readonly string[];
}

export function pack(directory: string): Packed {
  const report: unknown = JSON.parse(run(directory, 'npm', 'pack', '--json', '--silent'));
  const [packed] = report as { filename: string; files: { path: string }[] }[];
  assert.ok(packed);
  return { file: join(directory, packed.filename), names: packed.files.map(({ path }) => path) };
}
