/**
 * Formats the source with the Prettier that `.ci/tools` pins, installing it there the first time. `--check` only lists
 * the files that differ. `.prettierignore` lists unformatted files.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));

const tools = process.env.CAIRN_TOOLS ?? join('.ci', 'tools');
const prettier = join(tools, 'node_modules', 'prettier', 'bin', 'prettier.cjs');
if (!existsSync(prettier)) {
  const words = [
    'ci',
    '--prefix',
    tools,
    '--ignore-scripts',
    '--omit=optional',
    '--no-audit',
    '--no-fund',
  ];
  const { status } = spawnSync('npm', words, {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exit(status ?? 1);
}
const flags = process.argv.slice(2);
process.exitCode =
  spawnSync(process.execPath, [prettier, '--log-level=warn', ...flags, '.'], { stdio: 'inherit' })
    .status ?? 1;
