/** The OpenAPI document of a default start, and of a declaration with every kind of field, in published tools. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { allCommands } from '../../src/cli/commands.ts';
import { runCommand } from '../../test/support/cli/terminal.ts';
import { install } from '../../test/support/handbook.ts';

const text = { kind: 'text', optional: true };
const reference = { kind: 'reference', to: 'tags', onDelete: 'clear', optional: true };
const fields = {
  title: { kind: 'text', min: 1 }, pages: { kind: 'integer', default: 1 }, price: { kind: 'number', optional: true },
  isNew: { kind: 'boolean', default: true }, state: { kind: 'choice', values: ['new', 'old'], nullable: true },
  mail: { kind: 'email', optional: true }, at: { kind: 'timestamp', optional: true },
  site: { kind: 'url', optional: true }, tagId: reference,
  alsoIds: { kind: 'list', of: { kind: 'reference', to: 'tags', onDelete: 'clear' }, default: [] },
  byId: { ...reference, to: 'users', show: 'name' }, place: { kind: 'object', fields: { city: text }, optional: true },
  more: { kind: 'json', optional: true }, score: { kind: 'json', like: 'number', optional: true },
};
const collections = [
  { name: 'books', timestamps: true, display: '{title}', fields },
  { name: 'tags', id: { kind: 'text' }, fields: { name: text } },
  { name: 'notes', id: { kind: 'any' }, additional: true, fields: {} },
  { name: 'settings', single: true, fields: { theme: text } },
  { name: 'motto', single: true, value: { kind: 'text' } },
];

/** Writes both documents, and returns their names. */
async function writeDocuments(directory: string): Promise<readonly string[]> {
  writeFileSync(join(directory, 'kinds.json'), JSON.stringify({ collections }));
  const starts = { 'default.json': [], 'all.json': ['--collections', join(directory, 'kinds.json')] };
  for (const [name, words] of Object.entries(starts)) {
    const { out, err } = await runCommand(await allCommands(), ['openapi', ...words]);
    assert.equal(err, '');
    writeFileSync(join(directory, name), out);
  }
  return Object.keys(starts);
}

/** Runs an installed program, and returns what it printed. */
function runTool(directory: string, words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('npx', words, { cwd: directory, encoding: 'utf8' });
  assert.equal(status, 0, `${words.join(' ')}: ${stdout}${stderr}`);
  return stdout + stderr;
}

test('linters find no mistakes in the OpenAPI document', async (t) => {
  const directory = install(t, { '@redocly/cli': '2.77.0', '@stoplight/spectral-cli': '6.16.3' });
  if (directory === undefined) return;
  const rules = { extends: 'spectral:oas', rules: { 'info-contact': 'off' } };
  writeFileSync(join(directory, 'rules.json'), JSON.stringify(rules));
  for (const document of await writeDocuments(directory)) {
    assert.doesNotMatch(runTool(directory, ['redocly', 'lint', document]), /You have \d+ warning/);
    runTool(directory, ['spectral', 'lint', '-r', 'rules.json', '-F', 'warn', document]);
  }
});

test('generators make clients of the OpenAPI document', async (t) => {
  const generators = { 'openapi-typescript': '7.13.0', 'swagger-typescript-api': '13.13.0', typescript: '5.9.3' };
  const directory = install(t, generators);
  if (directory === undefined) return;
  for (const document of await writeDocuments(directory)) {
    const [types, client] = [`types-of-${document}.ts`, `client-of-${document}.ts`];
    runTool(directory, ['openapi-typescript', document, '-o', types]);
    runTool(directory, ['swagger-typescript-api', 'generate', '-p', document, '-o', '.', '-n', client]);
    for (const name of [types, client]) assert.ok(existsSync(join(directory, name)), name);
    const strictly = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--moduleResolution', 'bundler'];
    runTool(directory, ['tsc', ...strictly, '--module', 'esnext', types, client]);
  }
});
