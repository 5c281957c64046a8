import { FatalError } from '../../base/errors.ts';
import type { CollectionDeclaration } from '../../collections/declaration.ts';
import { representationWriter } from '../../schema/record.ts';
import { storedRecordParser } from '../../schema/validate.ts';
import type { Image } from '../../store/format/snapshot.ts';

/**
 * Writes the declared collections of an image to `out`, block by block, as a file that can be
 * imported. @throws FatalError for a record that does not fit its declaration
 */
export async function exportCollections(
  declared: readonly CollectionDeclaration[],
  image: Image,
  out: (text: string) => void | Promise<void>,
): Promise<void> {
  let separator = '{';
  for (const { name, fields, isSingle } of declared) {
    const blocks = image.views.find((view) => view.name === name)?.blocks ?? [];
    // A single resource is not there before it was put.
    if (isSingle && blocks.length === 0) continue;
    await out(`${separator}\n${JSON.stringify(name)}:${isSingle ? '' : '['}`);
    separator = ',';
    const parse = storedRecordParser(fields);
    const shown = representationWriter(fields);
    let before = '\n';
    for (const block of blocks) {
      const lines = block.map((stored) => {
        const record = parse({ ...stored });
        if (typeof record === 'object') return shown(record);
        throw new FatalError(78, `Cannot export ${name}: record ${stored.id} ${record}`);
      });
      await out(before + lines.join(',\n'));
      before = ',\n';
    }
    if (!isSingle) await out('\n]');
  }
  await out(`${separator === '{' ? '{' : ''}\n}\n`);
}
