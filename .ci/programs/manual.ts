/** Writes the generated blocks of the manual, and the picture of its architecture: `node .ci/programs/manual.ts`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawFloors, projectDirectory } from '../../test/support/source.ts';
import { readPage, splitBlock, generateBlocks } from '../../test/support/handbook.ts';

for (const [name, block] of await generateBlocks()) {
  const page = readPage(name);
  const [before = '', , after = ''] = splitBlock(page, name) ?? [];
  writeFileSync(join(projectDirectory, page), before + block + after);
}
writeFileSync(join(projectDirectory, 'src', 'docs', 'architecture.svg'), drawFloors());
