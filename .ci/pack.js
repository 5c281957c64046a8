/**
 * Around `npm pack`: `node .ci/pack.js before` or `after`. The licence at the end of `src/README.md` stands in the
 * package's root meanwhile, where tools look for it; files get the same mode whatever the umask was, for npm packs it.
 */
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));
if (process.argv[2] === 'before') {
  const [, text] = readFileSync('src/README.md', 'utf8').split('\n## Licence\n\n');
  writeFileSync('LICENSE', text.split('\n## ')[0]);
  const below = ['src', 'dist'].flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((path) => join(folder, path)),
  );
  for (const path of ['LICENSE', 'README.md', 'package.json', ...below]) {
    if (statSync(path).isFile()) chmodSync(path, 0o644);
  }
} else {
  rmSync('LICENSE');
}
