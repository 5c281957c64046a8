import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { listFiles, projectDirectory, readSource } from '../support/source.ts';

const compiler = join(projectDirectory, 'node_modules', 'typescript', 'bin', 'tsc');
const skip = !existsSync(compiler) && 'needs the compiler';

/** The names that every example can use. */
const prelude = `
import { createApp, createLog, defineCollection, defineRoute, reply, systemClock } from 'cairn-api';
import type { App, Hooks } from 'cairn-api';
declare const app: App;
declare const request: Request;
const tasks = defineCollection({
  name: 'tasks',
  fields: {
    title: { kind: 'text' },
    done: { kind: 'boolean', default: false },
    afterId: { kind: 'reference', to: 'tasks', optional: true },
  },
});
`;

/** Returns the examples in the docstrings of a file. */
const readExamples = (text: string): string[] =>
  [...text.matchAll(/^ *\* @example\n((?: *\*(?: {5}.*)?\n)+)/gm)].map(([, lines = '']) =>
    lines.replaceAll(/^ *\* ?/gm, ''));

test('the examples of what programs use compile', { skip }, (t) => {
  const examples = listFiles('src/programs', '.ts').flatMap((path) => readExamples(readSource(path).text));
  assert.ok(examples.length >= 10, `${examples.length} examples`);
  const directory = temporaryDirectory(t);
  const functions = examples.map((example) => `export const _ = async () => {\n${example}};\n`);
  const files = functions.map((text, at) => {
    writeFileSync(join(directory, `${at}.ts`), prelude + text);
    return `${at}.ts`;
  });
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({
    extends: join(projectDirectory, 'tsconfig.json'),
    compilerOptions: {
      noEmit: true, rootDir: '/', noUnusedLocals: false, skipLibCheck: true,
      paths: { 'cairn-api': [join(projectDirectory, 'src', 'index.ts')] },
      typeRoots: [join(projectDirectory, 'node_modules', '@types')],
    },
    include: [], files,
  }));
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', directory], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
});
