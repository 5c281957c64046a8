import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';

import { projectDirectory } from '../../test/support/source.ts';

/**
 * Mistakes that the tests of the shared log must catch: the beginning of the test's name, the mistake, the file, a text
 * and its replacement.
 */
const mutants: readonly (readonly [string, string, string, string, string])[] = [
  [
    'A2', 'the id of a group is not compared', 'options/cluster/shared-log.ts',
    'if (String(groups[0]?.value)', "if (id === '' && String(groups[0]?.value)",
  ],
  [
    'P1', 'the last group is not compared', 'options/cluster/shared-log.ts',
    'const head = hasValue(`${prefix}head`, JSON.stringify(this.#tail.head))',
    'const head = isAt(this.#tail.nextKey, 0)',
  ],
  [
    'P1', 'the groups since the former snapshot are removed', 'options/cluster/checkpoints.ts',
    'trimLog(this.#options, head.sequence + 1)',
    'trimLog(this.#options, image.head.sequence + 1)',
  ],
  [
    'A4', 'an unknown outcome is answered as a failure', 'options/cluster/shared-log.ts',
    "return { outcome: 'unknown', error }",
    "return { outcome: 'refused', error: new CairnError('storage_full', '') }",
  ],
  [
    'A3', 'refusals are answered without a confirmation', 'options/cluster/shared-log.ts',
    'group.commits.length === 0 ? this.#ask()',
    'group.commits.length === 0 ? true',
  ],
  [
    'W3', 'nothing looks for an event that the watch has lost', 'options/cluster/shared-log.ts',
    'if (isBehind || this.#isDue) await this.#confirm()',
    'if (isBehind) await this.#confirm()',
  ],
  [
    'A4', 'a new epoch is taken for a new declaration', 'options/cluster/shared-log.ts',
    'const isSame = meta !== undefined && readEpoch(meta, this.#options.kid) === epoch',
    'const isSame = meta !== undefined',
  ],
  [
    'a write is decided again', 'a new declaration ends the running nodes', 'options/cluster/shared-log.ts',
    'if (!isNext && meta.revision === metaRevision)',
    'if (!isNext)',
  ],
  [
    'A6', 'a node that writes nothing does not test the room', 'options/cluster/shared-log.ts',
    'void this.#availability.testRoom();', '',
  ],
  [
    'D1', 'a field that others must write may be new', 'options/cluster/declaration.ts',
    "field['required'] === true || ", '',
  ],
  [
    'D1', 'a reference may be new', 'options/cluster/declaration.ts',
    "&& !areBoth(field['to']?.toString())", '',
  ],
  [
    'optional fields', 'a field that is not declared is lost', 'collections/resource.ts',
    '{ ...kept, ownerId', '{ ownerId',
  ],
];

suite('the cases of the shared log', () => {
  const copy = mkdtempSync(join(tmpdir(), 'cairn-mutants-'));
  after(() => rmSync(copy, { recursive: true, force: true }));
  for (const name of ['src', 'test', 'README.md', 'package.json', 'tsconfig.json']) {
    cpSync(join(projectDirectory, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(projectDirectory, 'node_modules'), join(copy, 'node_modules'));

  /** The file with the tests whose names begin in this way. */
  function fileOf(pattern: string): string {
    const files = ['cases', 'declaration'].map((name) => `test/cluster/${name}.test.ts`);
    const found = files.filter((path) => new RegExp(`^ *test\\(['\`]${pattern}`, 'm')
      .test(readFileSync(join(projectDirectory, path), 'utf8')));
    assert.equal(found.length, 1, `${pattern} is tested in ${found.join(' and ')}`);
    return found[0] ?? '';
  }

  function run(pattern: string, timeout: number): number | null {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];
    const flags = [...typescript, '--test', `--test-name-pattern=^${pattern}`, fileOf(pattern)];
    return spawnSync(process.execPath, flags, { cwd: copy, env, timeout }).status;
  }

  const sound = new Set<string>();
  for (const [caughtBy, what, file, from, to] of mutants) {
    test(`${caughtBy} detects that ${what}`, () => {
      const path = join(copy, 'src', file);
      const text = readFileSync(path, 'utf8');
      assert.equal(text.split(from).length, 2, `${file} has not "${from}" once`);
      if (!sound.has(caughtBy)) assert.equal(run(caughtBy, 120_000), 0);
      sound.add(caughtBy);
      writeFileSync(path, text.replace(from, to));
      try {
        // A mistake can also make a case wait forever.
        assert.notEqual(run(caughtBy, 20_000), 0);
      } finally {
        writeFileSync(path, text);
      }
    });
  }
});
