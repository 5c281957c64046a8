/** Writes the blocks of the manual that are made from the code: `node .ci/programs/manual.ts`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pageWith, partsOf, wantedBlocks } from '../../test/support/handbook.ts';
import { projectDirectory } from '../../test/support/source.ts';

for (const [name, block] of await wantedBlocks()) {
  const page = pageWith(name);
  const [before = '', , after = ''] = partsOf(page, name) ?? [];
  writeFileSync(join(projectDirectory, page), before + block + after);
}
