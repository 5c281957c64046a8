import { FatalError } from '../../base/errors.ts';
import type { CollectionDeclaration } from '../../collections/declaration.ts';
import { representationWriter } from '../../schema/record.ts';
import { storedRecordParser } from '../../schema/stored.ts';
import type { Image } from '../../store/format/snapshot.ts';

export type Exported = Pick<CollectionDeclaration, 'name' | 'fields' | 'isSingle'>;

type Out = (text: string) => void | Promise<void>;

/**
 * Writes collections of an image to `out`, block by block, as a file that can be imported.
 * @throws FatalError for a record that does not fit its declaration
 */
export async function exportJson(
  collections: readonly Exported[],
  image: Image,
  out: Out,
): Promise<void> {
  let separator = '{';
  for (const each of collections) {
    const { name, isSingle } = each;
    const blocks = writeBlocks(each, image);
    // A single resource is absent until its first PUT.
    if (isSingle && blocks.length === 0) continue;
    await out(`${separator}\n${JSON.stringify(name)}:${isSingle ? '' : '['}`);
    separator = ',';
    let before = '\n';
    for (const block of blocks) {
      await out(before + block().join(',\n'));
      before = ',\n';
    }
    if (!isSingle) await out('\n]');
  }
  await out(`${separator === '{' ? '{' : ''}\n}\n`);
}

/**
 * Writes a line for each record: `{"collection":"posts","record":{…}}`.
 * @throws FatalError as `exportJson`
 */
export async function exportLines(
  collections: readonly Exported[],
  image: Image,
  out: Out,
): Promise<void> {
  for (const each of collections) {
    const start = `{"collection":${JSON.stringify(each.name)},"record":`;
    for (const block of writeBlocks(each, image))
      await out(
        block()
          .map((record) => `${start}${record}}\n`)
          .join(''),
      );
  }
}

function writeBlocks({ name, fields }: Exported, image: Image): readonly (() => string[])[] {
  const blocks = image.views.find((view) => view.name === name)?.blocks ?? [];
  const parse = storedRecordParser(fields);
  const shown = representationWriter(fields);
  return blocks.map(
    (block) => () =>
      block.map((stored) => {
        const record = parse({ ...stored });
        if (typeof record === 'object') return shown(record);
        throw new FatalError(
          78,
          `Cannot export ${name}: record ${stored.id} ${record}; see "cairn check"`,
        );
      }),
  );
}
