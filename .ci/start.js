/**
 * `npm start`: serves from the source, or from a build if this Node.js does not run TypeScript. (tsx would run files
 * from the temporary directory, where others may write.) npm starts a shell that dies of a signal without passing it
 * on, so when that shell is gone, the server stops as if it had received the signal.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const parent = process.ppid;
const project = join(import.meta.dirname, '..');
const main = join(
  project,
  ...(process.features.typescript ? ['src', 'main.ts'] : ['dist', 'main.js']),
);
if (!process.features.typescript) {
  const { status } = spawnSync(process.execPath, [join(project, '.ci', 'build.js'), 'dist'], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}
setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 250).unref();

process.argv.splice(1, 1, main);
await import(pathToFileURL(main).href);
