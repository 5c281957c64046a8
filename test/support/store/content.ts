import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { StoreDamageError } from '../../../src/store/recovery/damage-error.ts';
import { all, makeStore, person, small, startStore, type Opened } from './fixtures.ts';
import { SimulatedDisk } from './simulated-disk.ts';

export const options = { ...small, spareBytes: 16 };

/** Files by name. */
export type Content = Map<string, Buffer>;

export async function start(content: Content): Promise<Opened & { disk: SimulatedDisk }> {
  const disk = new SimulatedDisk(content);
  return { ...(await startStore({ ...options, files: disk })), disk };
}

export type Work = (opened: Opened) => Promise<unknown>;

/** What a process leaves that was killed after `work`. */
export async function killedAfter(work: Work, before: Content = new Map()): Promise<Content> {
  const opened = await start(before);
  await work(opened);
  const content = opened.disk.content();
  content.delete('lock');
  return content;
}

export async function stoppedAfter(work: Work, before: Content = new Map()): Promise<Content> {
  const opened = await start(before);
  await work(opened);
  await opened.store.close();
  return opened.disk.content();
}

export const write = (...names: string[]) => async ({ store, people }: Opened): Promise<void> => {
  for (const name of names) await store.write((tx) => tx.of(people).insert(person(name)));
};

/** Five commits: two in the snapshots, three in the journal. */
export const inBoth = (): Promise<Content> =>
  killedAfter(async (opened) => {
    await write('a', 'b')(opened);
    await opened.store.checkpoint();
    await write('c', 'd', 'e')(opened);
  });

export const journalOf = (content: Content): string =>
  [...content.keys()].filter((name) => name.startsWith('journal-')).sort().at(-1) ?? '';

export const textOf = (content: Content, name: string): string => content.get(name)?.toString() ?? '';

export function edit(content: Content, name: string, change: (text: string) => string): Content {
  return new Map(content).set(name, Buffer.from(change(textOf(content, name))));
}

export const dropLine = (index: number) => (text: string): string => text.split('\n').toSpliced(index, 1).join('\n');

export const names = ({ people }: Opened): string => all(people).map(({ name }) => name).join('');

/** Gives a snapshot the digest that fits it. */
export function rehash(content: Content, name: string): Content {
  return edit(content, name, (text) => {
    const end = text.lastIndexOf('],"count"');
    const digest = createHash('sha256').update(text.slice(0, end)).digest('hex');
    return text.slice(0, end) + text.slice(end).replace(/[0-9a-f]{64}/, digest);
  });
}

/** Cut off at every `step`-th byte, and with each bit of it flipped. */
function* changes(bytes: Buffer, step: number): Generator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += step) {
    yield bytes.subarray(0, at);
    for (let bit = 0; bit < 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8((bytes[at] ?? 0) ^ (1 << bit), at);
      yield flipped;
    }
  }
}

/** Damages each file of a store that was stopped, in every way: each time the start is refused. Returns how often. */
export async function damageAfterStop(step: number): Promise<number> {
  const content = await stoppedAfter(async (opened) => {
    await write('a', 'b')(opened);
    await opened.store.write((tx) => tx.of(opened.notes).insert({ person: 1, text: 'x' }));
  });
  let refusals = 0;
  for (const [name, bytes] of content) {
    for (const changed of changes(bytes, step)) {
      const { store } = makeStore({ ...options, files: new SimulatedDisk(new Map(content).set(name, changed)) });
      await assert.rejects(store.start(), StoreDamageError);
      refusals += 1;
    }
  }
  return refusals;
}

/**
 * Damages the journals and the snapshots of a store that was killed, and of one that was killed twice, so that it has
 * two journals: it is refused, or it is a prefix of the commits that includes what was in the snapshots and in the
 * former journal, with a notice.
 */
export async function damageAfterCrash(step: number): Promise<{ refused: number; prefixes: number }> {
  const once = await inBoth();
  const twice = await killedAfter(write('f', 'g'), once);
  const results = [await damaged(once, 'ab', 'cde', step), await damaged(twice, 'abcde', 'fg', step)];
  const sum = (of: 'refused' | 'prefixes'): number => results.reduce((total, each) => total + each[of], 0);
  return { refused: sum('refused'), prefixes: sum('prefixes') };
}

async function damaged(content: Content, certain: string, last: string, step: number) {
  const result = { refused: 0, prefixes: 0 };
  for (const [name, bytes] of content) {
    for (const changed of changes(bytes, step)) {
      const disk = new SimulatedDisk(new Map(content).set(name, changed));
      const opened = makeStore({ ...options, files: disk });
      try {
        await opened.store.start();
      } catch (error) {
        assert.ok(error instanceof StoreDamageError, String(error));
        result.refused += 1;
        continue;
      }
      result.prefixes += 1;
      assert.equal(name, journalOf(content), `${name} is damaged and was accepted`);
      const found = names(opened);
      assert.ok(found.startsWith(certain) && `${certain}${last}`.startsWith(found), found);
      assert.ok(opened.notices.some((notice) => notice.includes('not clean')));
      const wholeLines = changed.length < bytes.length && changed.at(-1) === 0x0a;
      assert.ok(wholeLines || opened.notices.some((notice) => notice.includes('cut short')));
    }
  }
  return result;
}
