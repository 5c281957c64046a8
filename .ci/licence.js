/**
 * Around `npm pack`: the licence at the end of `src/README.md` stands in the package's root, where tools look for it,
 * and is gone again afterwards: `node .ci/licence.js write` or `remove`.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));
if (process.argv[2] === 'write') {
  const [, text] = readFileSync('src/README.md', 'utf8').split('\n## Licence\n\n');
  writeFileSync('LICENSE', text.split('\n## ')[0]);
} else {
  rmSync('LICENSE');
}
