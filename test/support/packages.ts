import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestContext } from 'node:test';
import { temporaryDirectory } from './cli/spawn.ts';

/** Loads a file of packages. */
export type Load = (path: string) => Promise<ReturnType<typeof Object>>;

/** Packages of npm, each with its version. */
type Packages = Readonly<Record<string, string>>;

/** Installs packages in a directory; skips the test and returns nothing where they are not to be had. */
export function install(t: TestContext, packages: Packages): string | undefined {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ private: true, dependencies: packages }));
  const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  const { error, status, stderr } = spawnSync('npm', words, { cwd: directory, encoding: 'utf8', timeout: 240_000 });
  if (error !== undefined || status !== 0) {
    t.skip(`not to be had from npm: ${Object.keys(packages).join(', ')} ${error?.message ?? stderr.split('\n')[0]}`);
    return undefined;
  }
  return directory;
}

/** Installs packages, and returns what loads their files. */
export function bring(t: TestContext, packages: Packages): Load | undefined {
  const directory = install(t, packages);
  if (directory === undefined) return undefined;
  return (path) => import(pathToFileURL(join(directory, 'node_modules', path)).href);
}
