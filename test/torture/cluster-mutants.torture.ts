import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';

import { projectDirectory } from '../source.ts';

/** A mistake that the cases of the shared log must catch: in which file, what takes the place of what, and by which. */
interface Mutant {
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly caughtBy: string;
}

const mutants: Readonly<Record<string, Mutant>> = {
  'the id of a group is not compared': {
    file: 'cluster/shared-log.ts', from: 'if (String(groups[0]?.value)',
    to: "if (id === '' && String(groups[0]?.value)", caughtBy: 'A2',
  },
  'the last group is not compared': {
    file: 'cluster/shared-log.ts', from: 'hasValue(head, JSON.stringify(this.#head))',
    to: 'isAt(groupKey(this.#prefix, this.#head.sequence + 1), 0)', caughtBy: 'P1',
  },
  'the groups since the former snapshot are trimmed': {
    file: 'cluster/checkpoints.ts', from: 'trimLog(this.#options, head.sequence + 1)',
    to: 'trimLog(this.#options, moment.head.sequence + 1)', caughtBy: 'P1',
  },
  'an outcome that cannot be known is answered as a failure': {
    file: 'cluster/shared-log.ts', from: "return { outcome: 'unknown', error: this.#confirmedAt",
    to: "return { outcome: 'refused', error: this.#confirmedAt", caughtBy: 'A4',
  },
  'refusals are answered without a confirmation': {
    file: 'writer.ts', from: 'batch.commits.length === 0 ? this.#log.confirm()',
    to: "batch.commits.length === 0 ? Promise.resolve({ outcome: 'won' } as const)", caughtBy: 'A3',
  },
  'an event that the watch has lost is not looked for': {
    file: 'cluster/shared-log.ts', from: 'this.#isBehind || this.#since(this.#confirmedAt) >= confirmMs',
    to: 'this.#isBehind || this.#confirmedAt === -Infinity', caughtBy: 'W3',
  },
};

suite('the cases of the shared log', () => {
  const copy = mkdtempSync(join(tmpdir(), 'cairn-mutants-'));
  after(() => rmSync(copy, { recursive: true, force: true }));
  for (const name of ['src', 'test', 'package.json', 'tsconfig.json']) {
    cpSync(join(projectDirectory, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(projectDirectory, 'node_modules'), join(copy, 'node_modules'));

  function run(pattern: string, timeout: number): number | null {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const typescript = 'typescript' in process.features ? [] : ['--import', 'tsx'];
    const flags = [...typescript, '--test', `--test-name-pattern=^${pattern}`, 'test/cluster/cases.test.ts'];
    return spawnSync(process.execPath, flags, { cwd: copy, env, timeout }).status;
  }

  for (const [what, { file, from, to, caughtBy }] of Object.entries(mutants)) {
    test(`${caughtBy} catches that ${what}`, () => {
      const path = join(copy, 'src', 'store', file);
      const text = readFileSync(path, 'utf8');
      assert.equal(text.split(from).length, 2, `${file} has not "${from}" once`);
      assert.equal(run(caughtBy, 120_000), 0);
      writeFileSync(path, text.replace(from, to));
      try {
        // A mistake may also keep a case waiting for ever.
        assert.notEqual(run(caughtBy, 20_000), 0);
      } finally {
        writeFileSync(path, text);
      }
    });
  }
});
