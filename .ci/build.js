/**
 * Compiles the source without type checks, which `npm run check` does: `node .ci/build.js dist` for a package,
 * `node .ci/build.js .test` with the tests. The folder is replaced in one step at the end, so a server that starts
 * from it meanwhile finds all old files or all new ones. The types of a package are in one file.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundled } from './declarations.js';

process.chdir(join(import.meta.dirname, '..'));

const targets = {
  dist: { project: 'tsconfig.json', flags: [], source: '.' },
  '.test': {
    project: 'test/tsconfig.json',
    flags: ['--noCheck', '--declaration', 'false', '--sourceMap'],
    source: 'src',
  },
};

const [folder] = process.argv.slice(2);
const { project, flags, source } = targets[folder];
const fresh = `${folder}.new`;
rmSync(fresh, { recursive: true, force: true });

const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
const words = [compiler, '-p', project, '--noEmit', 'false', ...flags, '--outDir', fresh];
const { status } = spawnSync(process.execPath, words, { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);

const isAsset = (path) => !/[.](ts|json)$/.test(path);
cpSync(join('src', 'web'), join(fresh, source, 'web'), { recursive: true, filter: isAsset });
writeFileSync(join(fresh, 'package.json'), JSON.stringify({ type: 'module' }));
if (folder === 'dist') {
  const types = bundled(join(fresh, 'index.d.ts'));
  const paths = readdirSync(fresh, { recursive: true }).filter((path) => path.endsWith('.d.ts'));
  for (const path of paths) rmSync(join(fresh, path));
  for (const name of ['index.d.ts', 'index.d.cts']) writeFileSync(join(fresh, name), types);
}
rmSync(folder, { recursive: true, force: true });
renameSync(fresh, folder);
