import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { encodeLine } from '../../src/store/format/journal.ts';
import { refusals } from '../../src/store/recovery/cases.ts';
import { openStore } from '../../src/store/open-store.ts';
import { StoreDamageError } from '../../src/store/recovery/damage-error.ts';
import { projectDirectory } from '../support/source.ts';
import { runBeforeTests, isLockedRun } from '../support/basics.ts';
import {
  crash,
  type Content,
  damageAfterCrash,
  damageAfterStop,
  dropLine,
  editFile,
  createSnapshotAndJournal,
  findJournal,
  killAfter,
  createMachine,
  createStore,
  joinNames,
  notes,
  options,
  people,
  createPerson,
  fixDigest,
  seedRandom,
  SimulatedDisk,
  startWith,
  startStore,
  createSteppingClock,
  stopAfter,
  readText,
  listUnsynced,
  writePeople,
} from '../support/store/fixtures.ts';
import { serializeState } from '../support/store/crashes.ts';

const damagedAfterStop = await runBeforeTests(() => damageAfterStop(5));
const damagedAfterCrash = await runBeforeTests(() => damageAfterCrash(11));

async function refused(content: Content, label: string, file: string | RegExp, offset?: number): Promise<void> {
  const disk = new SimulatedDisk(content);
  const { store } = createStore({ ...options, files: disk });
  await assert.rejects(store.start(), (error) => {
    assert.ok(error instanceof StoreDamageError, String(error));
    assert.equal(error.label, label, error.message);
    assert.match(error.file, typeof file === 'string' ? new RegExp(`^${file}$`) : file);
    if (offset !== undefined) assert.equal(error.offset, offset, error.message);
    assert.ok(error.message.includes(`${error.file}, byte ${error.offset}: `));
    return true;
  });
  // A refusal changes nothing: the operator finds what was there.
  assert.deepEqual(disk.content(), content);
}

describe('the recovery at a start', () => {
  it('N1: an empty directory is a new store', async () => {
    const opened = await startWith(new Map());
    assert.equal(opened.store.status().sequence, 0);
    assert.deepEqual(opened.notices, []);
  });

  it('a directory with only snapshots, or only a journal, contains parts of a store', async () => {
    const whole = await stopAfter(writePeople('a'));
    const journal = findJournal(whole);
    const isThere = (content: Content): Promise<boolean> =>
      createStore({ ...options, files: new SimulatedDisk(content) }).store.exists();
    assert.equal(await isThere(new Map([...whole].filter(([name]) => name !== journal))), true);
    assert.equal(await isThere(new Map([...whole].filter(([name]) => name === journal))), true);
    assert.equal(await isThere(new Map()), false);
  });

  it('N2: snapshots without a journal are refused', async () => {
    const content = await stopAfter(writePeople('a'));
    content.delete(findJournal(content));
    await refused(content, 'N2', /\.json$/);
  });

  it('N2: a directory with an incomplete copy is refused', async () => {
    const content = await stopAfter(writePeople('a'));
    const journal = findJournal(content);
    await refused(editFile(content, journal, (text) => text.slice(0, 30)), 'N2', /\.json$/);
    await refused(new Map([['people.json.0a1b.tmp', Buffer.alloc(5)]]), 'N2', 'people.json.0a1b.tmp', 0);
  });

  it('S1: a snapshot with damaged lines is refused, with the byte', async () => {
    const content = await stopAfter(writePeople('a', 'b', 'c'));
    const text = readText(content, 'people.json');
    const second = text.indexOf('{"id":2');
    await refused(
      editFile(content, 'people.json', (t) => t.replace('{"id":2', '{"id"!2')),
      'S1',
      'people.json',
      second,
    );
    await refused(
      editFile(content, 'people.json', (t) => t.replace('{"id":2,', '{"id":1,')),
      'S1',
      'people.json',
      second,
    );
    const unfit = (t: string): string => t.replace('"role":"member"},\n{"id":3', '"x":1},\n{"id":3');
    // Without a digest that fits, it is the record that is wrong, and not the declaration.
    await refused(editFile(content, 'people.json', unfit), 'S1', 'people.json', second);
    await refused(fixDigest(editFile(content, 'people.json', unfit), 'people.json'), 'D1', 'people.json', second);
    await refused(editFile(content, 'people.json', (t) => t.slice(0, second)), 'S1', 'people.json', second);
    await refused(editFile(content, 'people.json', () => ''), 'S1', 'people.json', 0);
  });

  it('S2: a snapshot that was edited by hand is refused as such', async () => {
    const content = await stopAfter(writePeople('a', 'b', 'c'));
    const renamed = editFile(content, 'people.json', (text) => text.replace('"name":"b"', '"name":"B"'));
    await refused(renamed, 'S2', 'people.json');
    await refused(editFile(content, 'people.json', dropLine(1)), 'S2', 'people.json');
  });

  it('S3: a snapshot of another store is refused', async () => {
    const content = await stopAfter(writePeople('a'));
    const foreign = editFile(content, 'people.json', (text) => text.replace(/"epoch":"\w+"/, '"epoch":"1234"'));
    await refused(fixDigest(foreign, 'people.json'), 'S3', 'people.json');
  });

  it('S3: a journal of another store is refused even without a snapshot', async () => {
    const content = await killAfter(writePeople('a', 'b'));
    const disk = new SimulatedDisk();
    for (const _ of [1, 2]) {
      await startStore({ ...options, files: disk, random: seedRandom(2) });
      await disk.remove('lock');
    }
    await refused(new Map([...disk.content(), ...content]), 'S3', /^journal-[12]\.jsonl$/);
  });

  it('S4: a newer format is refused, with file and byte', async () => {
    const content = await stopAfter(writePeople('a'));
    const newer = (text: string): string => text.replace(/"format":\d/, '"format":3');
    await refused(editFile(content, 'people.json', newer), 'S4', 'people.json', 0);
    await refused(editFile(content, findJournal(content), newer), 'S4', findJournal(content), 0);
  });

  it('S5: a listed snapshot that is absent or older is refused', async () => {
    const old = await stopAfter(writePeople('a'));
    const content = await stopAfter(writePeople('b'), old);
    const without = new Map(content);
    without.delete('people.json');
    await refused(without, 'S5', 'people.json');
    await refused(new Map(content).set('people.json', old.get('people.json') ?? Buffer.alloc(0)), 'S5', 'people.json');
  });

  it('S5: a snapshot that is newer than a closed journal is refused', async () => {
    const old = await stopAfter(writePeople('a'));
    const newer = await stopAfter(writePeople('b'), old);
    await refused(new Map(old).set('people.json', newer.get('people.json') ?? Buffer.alloc(0)), 'S5', 'people.json');
  });

  it('S6: each snapshot replays from its own age', async () => {
    const content = await createSnapshotAndJournal();
    const before = await startWith(content);
    await before.store.checkpoint();
    const after = before.disk.content();
    // As if only one of the two renames of its first checkpoint had reached the disk.
    const renames = before.disk.operations.filter(({ kind }) => kind === 'rename');
    assert.equal(renames.length, 2);
    const mixed = new Map(content).set('people.json', after.get('people.json') ?? Buffer.alloc(0));
    const opened = await startWith(mixed);
    assert.equal(serializeState(opened), serializeState(before));
  });

  it('S1: a number that leaves no next number is refused', async () => {
    const content = await stopAfter(writePeople('a', 'b'));
    for (const number of [2 ** 52, 2 ** 53 - 1, 2 ** 53]) {
      const edited = editFile(content, 'people.json', (text) => text.replace('{"id":2,', `{"id":${number},`));
      await refused(fixDigest(edited, 'people.json'), 'S1', 'people.json');
    }
  });

  it('S5: a snapshot that is ahead of the journals is refused', async () => {
    const content = await createSnapshotAndJournal();
    const further = await stopAfter(writePeople('f'), content);
    const newer = further.get('people.json') ?? Buffer.alloc(0);
    await refused(new Map(content).set('people.json', newer), 'S5', 'people.json');
  });

  it('J1: a damaged last line is dropped and reported', async () => {
    const content = await createSnapshotAndJournal();
    const name = findJournal(content);
    const text = readText(content, name);
    const last = text.lastIndexOf('\n', text.length - 2) + 1;
    const zeros = `${text.slice(0, last)}${'\0'.repeat(9)}`;
    for (const torn of [text.slice(0, -1), text.slice(0, last + 5), zeros, text.replace('"e"', '"x"')]) {
      const opened = await startWith(editFile(content, name, () => torn));
      assert.equal(joinNames(opened), 'abcd');
      const notices = opened.notices.join();
      assert.ok(notices.includes(`${name} ends at byte ${last}`), notices);
    }
  });

  it('J1: anything but spaces after the last line is a torn write', async () => {
    const content = await createSnapshotAndJournal();
    const name = findJournal(content);
    const padded = editFile(content, name, (text) => `${text}${' '.repeat(600)}`);
    const opened = await startWith(padded);
    assert.equal(joinNames(opened), 'abcde');
    assert.equal(opened.notices.join(), 'the last stop was not clean: 3 commits were replayed');
    const torn = await startWith(editFile(padded, name, (text) => `${text.slice(0, -9)}{"sequ   `));
    assert.equal(joinNames(torn), 'abcde');
    assert.ok(torn.notices.join().includes('cut short'));
    const stopped = await stopAfter(writePeople('a'));
    const closed = findJournal(stopped);
    await refused(editFile(stopped, closed, (text) => `${text} `), 'J2', closed);
  });

  it('J1: a last line without its beginning is torn, even before preallocated space', async () => {
    const content = await createSnapshotAndJournal();
    const name = findJournal(content);
    const text = readText(content, name);
    const last = text.lastIndexOf('\n', text.length - 2) + 1;
    for (const lost of [' ', '\0']) {
      const torn = `${text.slice(0, last)}${lost.repeat(20)}${text.slice(last + 20)}${' '.repeat(600)}`;
      assert.equal(joinNames(await startWith(editFile(content, name, () => torn))), 'abcd');
    }
  });

  it('J2: a last line without a line feed, or with several groups, is refused', async () => {
    const content = await createSnapshotAndJournal();
    const name = findJournal(content);
    const text = `${readText(content, name)}${' '.repeat(600)}`;
    const [first = '', second = '', third = '', fourth = ''] = text.split('\n').map((line) => `${line}\n`);
    for (const damaged of ['}\v', '}\0', '}J', '\0\0', '\0\0\0\0\0{', '}{']) {
      const joined = text.replace(`${third}${fourth}`, third.slice(0, -2) + damaged + fourth);
      await refused(editFile(content, name, () => joined), 'J2', name, `${first}${second}`.length);
      await refused(editFile(content, name, () => joined.trimEnd()), 'J2', name, `${first}${second}`.length);
    }
    const last = text.lastIndexOf('{"sequence"');
    await refused(editFile(content, name, () => text.replace(/\n +$/, '\v    ')), 'J2', name, last);
    // The contents of a record decide nothing: this one is cut short in each of its parts.
    const record = '{"id":6,"name":[],"crc":"00000000"},{"sequence":7,"commits":[[],"crc":"00000000"}';
    const longer = readText(extended(content, `{"sequence":6,"commits":[[["people",${record}]]]`), name);
    for (let length = text.trimEnd().length + 2; length < longer.length; length += 1) {
      for (const after of ['', '    ', '\0\0\0\0']) {
        assert.equal(
          joinNames(await startWith(editFile(content, name, () => longer.slice(0, length) + after))),
          'abcde',
        );
      }
    }
  });

  it('J2: a damaged, missing, repeated or stale line before the last is refused', async () => {
    const content = await createSnapshotAndJournal();
    const name = findJournal(content);
    const lines = readText(content, name).split('\n');
    const second = (lines[0]?.length ?? 0) + 1;
    await refused(editFile(content, name, (text) => text.replace('"c"', '"x"')), 'J2', name, second);
    await refused(editFile(content, name, dropLine(1)), 'J2', name, second);
    const repeated = (text: string): string => text.split('\n').toSpliced(2, 0, lines[1] ?? '').join('\n');
    await refused(editFile(content, name, repeated), 'J2', name);
    const stale = await killAfter(writePeople('x', 'y'));
    const staleLine = readText(stale, findJournal(stale)).split('\n')[1] ?? '';
    await refused(
      editFile(content, name, (text) => text.split('\n').toSpliced(2, 1, staleLine).join('\n')),
      'J2',
      name,
    );
  });

  /** A journal with one more line, whose `crc` fits. */
  const extended = (content: Content, body: string): Content =>
    editFile(content, findJournal(content), (text) => {
      const chain = Number.parseInt(text.slice(-11, -3), 16);
      return text + encodeLine(body, chain).bytes.toString();
    });

  it('J2: an unfinished import of an earlier version is refused', async () => {
    const content = (await stopAfter(writePeople('a'))).set('import', Buffer.from('{"after":0}'));
    await refused(content, 'J2', 'import');
  });

  it('J2: a gap in the sequence is refused', async () => {
    const content = await createSnapshotAndJournal();
    const { length } = readText(content, findJournal(content));
    await refused(extended(content, '{"sequence":7,"commits":[[["people",1]]]'), 'J2', findJournal(content), length);
    await refused(extended(content, '{"sequence":5,"commits":[[["people",1]]]'), 'J2', findJournal(content), length);
  });

  it('J2: a line with a correct CRC that does not match the format or the state is refused', async () => {
    const content = await createSnapshotAndJournal();
    const bodies = [
      '{"other":6',
      '{"sequence":6,"commits":[]',
      '{"sequence":6,"commits":[7]',
      '{"sequence":6,"commits":[[7]]',
      '{"sequence":6,"commits":[[["people",9]]]',
      '{"sequence":6,"commits":[[["strangers",1]]]',
      '{"sequence":6,"commits":[[["people",{"id":6,"revision":5,"name":"x","email":"x","role":"x"}]]]',
    ];
    for (const body of bodies) await refused(extended(content, body), 'J2', findJournal(content));
  });

  it('D1: a record that does not match its declaration is refused', async () => {
    const content = await createSnapshotAndJournal();
    const unfit = '{"sequence":6,"commits":[[["people",{"id":6,"revision":6,"name":"x"}]]]';
    await refused(extended(content, unfit), 'D1', findJournal(content));
  });

  it('D3: a repeated unique value is refused after the replay', async () => {
    const content = await createSnapshotAndJournal();
    const change = (sequence: number, email: string): string =>
      `["people",{"id":6,"revision":${sequence},"name":"x","email":"${email}","role":""}]`;
    const twice = `{"sequence":6,"commits":[[${change(6, 'a@example.org')}]]`;
    await refused(extended(content, twice), 'D3', 'people.json', 0);
    const corrected = `{"sequence":6,"commits":[[${change(6, 'a@example.org')}],[${change(7, 'f')}]]`;
    assert.equal((await startWith(extended(content, corrected))).people.find('email', 'f')?.id, 6);
  });

  it('D2: a reference without a target is refused, and names the records', async () => {
    const content = await stopAfter(async (opened) => {
      await writePeople('a', 'b')(opened);
      const { store, notes } = opened;
      for (const id of [1, 3, 2]) await store.write((tx) => tx.of(notes).insert({ person: id, text: 'x' }));
    });
    const store = openStore({
      ...options, files: new SimulatedDisk(content), clock: createSteppingClock(), random: seedRandom(3),
      machine: createMachine(),
    });
    store.collection(people);
    store.collection({ ...notes, references: { person: 'people' } });
    await assert.rejects(store.start(), (error) => {
      assert.ok(error instanceof StoreDamageError && error.label === 'D2', String(error));
      assert.match(error.problem, /^notes\.json, .*: 1 record has a "person" that is not a record of people: 2 \[/);
      return true;
    });
  });

  it('J2: anything after the single line of a closed journal is refused', async () => {
    const content = await stopAfter(writePeople('a'));
    const name = findJournal(content);
    for (const more of ['x', '\n', '{"sequence":2,"commits":[[["people",1]]],"crc":"00000000"}\n']) {
      await refused(editFile(content, name, (text) => text + more), 'J2', name);
    }
  });

  it('J6, J7, J8: several journals are replayed in order, without the unneeded ones', async () => {
    const first = await killAfter(writePeople('a', 'b'));
    const rotated = await startWith(first);
    await rotated.store.checkpoint();
    rotated.disk.fault = ({ operation, name }) =>
      operation === 'open' && /\.json\.\w+\.tmp$/.test(name) ? { code: 'ENOSPC' } : undefined;
    await writePeople('c')(rotated);
    await rotated.store.checkpoint();
    await writePeople('d')(rotated);
    const content = rotated.disk.content();
    content.delete('lock');
    const journals = (files: Content): string[] => [...files.keys()].filter((name) => name.startsWith('journal'));
    assert.deepEqual(journals(content), ['journal-2.jsonl', 'journal-3.jsonl']);
    const opened = await startWith(new Map(content).set('journal-1.jsonl', Buffer.from('rubbish')));
    assert.equal(joinNames(opened), 'abcd');
    assert.deepEqual(journals(opened.disk.content()), ['journal-2.jsonl', 'journal-3.jsonl', 'journal-4.jsonl']);
    await opened.store.checkpoint();
    assert.deepEqual(journals(opened.disk.content()), ['journal-4.jsonl']);

    const without = new Map(content);
    without.delete('journal-2.jsonl');
    await refused(without, 'J7', 'journal-3.jsonl');
    await refused(editFile(content, 'journal-2.jsonl', dropLine(-2)), 'J7', 'journal-3.jsonl');
    await refused(editFile(content, 'journal-2.jsonl', (text) => text.slice(0, -1)), 'J2', 'journal-2.jsonl');
  });

  it('J6: a start after a kill writes no snapshot before the first checkpoint', async () => {
    const first = await killAfter(writePeople('a', 'b'));
    const before = await startWith(first);
    assert.deepEqual([...before.disk.content().keys()].sort(), ['journal-1.jsonl', 'journal-2.jsonl', 'lock']);
    assert.equal(readText(before.disk.content(), 'journal-1.jsonl'), readText(first, 'journal-1.jsonl'));
    assert.equal(before.store.status().checkpointedAt, undefined);
    await writePeople('c')(before);
    await before.store.checkpoint();
    const content = before.disk.content();
    assert.deepEqual([...content.keys()].filter((name) => name.startsWith('journal')), ['journal-3.jsonl']);
    await before.store.close();
    assert.equal(joinNames(await startWith(before.disk.content())), 'abc');
  });

  it('J6: the rest of a journal after the start of the next one is ignored', async () => {
    const first = await killAfter(writePeople('a', 'b'));
    const name = 'journal-1.jsonl';
    // The whole group comes from a process that was frozen while another one replaced it.
    const frozen = readText(await killAfter(writePeople('a', 'b', 'z')), name);
    assert.ok(frozen.startsWith(readText(first, name)));
    for (const end of ['{"sequence":3,"com', '{"sequence":3,"commits":[],"crc":"00000000"}\n']) {
      const torn = editFile(first, name, (text) => text + end);
      assert.match((await startWith(torn)).notices.join(), /cut short/);
      const content = await killAfter(writePeople('c'), torn);
      assert.equal(joinNames(await startWith(content)), 'abc');
      assert.equal(joinNames(await startWith(editFile(content, name, () => frozen))), 'abc');
      const again = await killAfter(writePeople('d'), content);
      assert.equal(joinNames(await startWith(again)), 'abcd');
      await refused(editFile(again, name, () => dropLine(-2)(readText(first, name))), 'J7', 'journal-2.jsonl');
    }
  });

  it('J6: repeatedly killed starts leave only the journals that they wrote to', async () => {
    let content = await killAfter(writePeople('a'));
    for (let n = 0; n < 20; n += 1) content = await killAfter(async () => undefined, content);
    assert.deepEqual([...content.keys()].sort(), ['journal-1.jsonl', 'journal-21.jsonl']);
    for (let n = 0; n < 20; n += 1) {
      content = await killAfter(writePeople(`b${n}`), content);
      assert.ok(content.size <= 12, [...content.keys()].join());
    }
    assert.match(joinNames(await startWith(content)), /^ab0b1.*b19$/);
  });

  it('J6: a last group whose sync failed is durable before the next one', async () => {
    const disk = new SimulatedDisk(new Map(), false);
    const first = await startStore({ ...options, files: disk });
    await writePeople('a')(first);
    disk.fault = ({ operation }) => (operation === 'sync' ? { code: 'EIO' } : undefined);
    await assert.rejects(writePeople('b')(first), { code: 'outcome_unknown' });
    disk.fault = () => undefined;
    await first.store.close();
    await disk.remove('lock').catch(() => undefined);
    const second = await startStore({ ...options, files: disk });
    assert.equal(joinNames(second), 'ab');
    await writePeople('c')(second);
    const left = crash(disk.operations, new Set(listUnsynced(disk.operations)));
    left.delete('lock');
    assert.equal(joinNames(await startWith(left)), 'abc');
  });

  it('J2: a journal without its first line is refused', async () => {
    const content = await createSnapshotAndJournal();
    const name = findJournal(content);
    await refused(editFile(content, name, (text) => text.replace('"after":2', '"after":1')), 'J2', name, 0);
    await refused(editFile(content, name, () => ''), 'N2', 'people.json', 0);
    await refused(editFile(content, name, (text) => text.slice(0, 30)), 'N2', 'people.json', 0);
    const renamed = new Map(content).set('journal-9.jsonl', content.get(name) ?? Buffer.alloc(0));
    await refused(renamed, 'J2', 'journal-9.jsonl', 0);
  });

  it('J3: a newest journal that was only partly created is ignored', async () => {
    const content = await createSnapshotAndJournal();
    const first = readText(content, findJournal(content)).split('\n', 1).join();
    for (const made of ['', first.slice(0, 30), first, `${first.slice(0, -3)}..}\n`]) {
      const opened = await startWith(new Map(content).set('journal-7.jsonl', Buffer.from(made)));
      assert.equal(joinNames(opened), 'abcde');
      assert.equal(findJournal(opened.disk.content()), 'journal-8.jsonl');
      const fresh = await startWith(new Map([['journal-1.jsonl', Buffer.from(made.replace('2', '1').slice(0, 50))]]));
      assert.equal(joinNames(fresh), '');
    }
    const used = `${first.slice(0, -3)}..}\n{"sequence":3,"commits":[],"crc":"00000000"}\n`;
    await refused(new Map(content).set('journal-7.jsonl', Buffer.from(used)), 'J2', 'journal-7.jsonl', 0);
  });

  it('J2: a journal with a damaged first block is not taken for a partly created one', async () => {
    const content = await killAfter(writePeople(...'abcdefghij'));
    assert.deepEqual([...content.keys()], ['journal-1.jsonl', 'people.json', 'notes.json'].slice(0, content.size));
    const name = findJournal(content);
    const text = readText(content, name);
    const room = ' '.repeat(600);
    const zeroed = (length: number): string => '\0'.repeat(length) + text.slice(length);
    const joined = text.split('\n', 2).join('\v');
    for (const damaged of [
      zeroed(text.length) + room, zeroed(400) + room, zeroed(400), zeroed(text.length - 100),
      joined, `${joined}\n`, text.replace('\n', '\v'), room,
    ]) {
      await refused(editFile(content, name, () => damaged), 'J2', name, 0);
    }
  });

  it('L1, L2: temporary files are removed, unknown files stay', async () => {
    const content = await createSnapshotAndJournal();
    const left = ['people.json.0a1b2c3d.tmp', 'journal-7.jsonl.0a1b2c3d.tmp', 'journal-1.torn.tmp'];
    // Files of the first edition.
    left.push('journal-7.jsonl.tmp', 'people.json.2.tmp', 'reserve', 'reserve.tmp');
    const others = ['keys.json', 'keys.json.tmp', 'notes.txt', 'people.json.bak', 'rotation.tmp', 'x.tmp'];
    others.push('My plan.json.old.tmp', 'journal-2026.notes.tmp');
    for (const name of [...left, ...others]) content.set(name, Buffer.from('?'));
    const opened = await startWith(content);
    assert.equal(joinNames(opened), 'abcde');
    const found = new Set(opened.disk.content().keys());
    for (const name of left) assert.ok(!found.has(name), name);
    for (const name of others) assert.ok(found.has(name), name);
  });

  it('C1: a collection that is not registered is kept', async () => {
    const content = await createSnapshotAndJournal();
    const disk = new SimulatedDisk(content);
    const bare = openStore({
      ...options,
      files: disk,
      clock: createSteppingClock(),
      random: seedRandom(1),
      machine: createMachine(),
    });
    await bare.start();
    await bare.close();
    const opened = await startWith(disk.content());
    assert.equal(joinNames(opened), 'abcde');
    assert.deepEqual(opened.notices, []);
  });

  it('C2: a new collection is empty, even if its first start is interrupted', async () => {
    const content = await killAfter(writePeople('a', 'b'));
    const addTo = async (before: Content): Promise<SimulatedDisk> => {
      const disk = new SimulatedDisk(before);
      const { store } = createStore({ ...options, files: disk });
      assert.equal(store.collection({ ...notes, name: 'visits' }).size, 0);
      await store.start();
      return disk;
    };
    const { operations } = await addTo(content);
    const begun = operations.findIndex(({ kind }) => kind === 'syncDirectory') + 1;
    for (let length = begun; length <= operations.length; length += 1) {
      const left = crash(operations.slice(0, length), new Set());
      left.delete('lock');
      await addTo(left);
    }
  });

  it('has a test here for each of its cases', { skip: isLockedRun && 'the source is out of reach' }, () => {
    const titles = readFileSync(import.meta.filename, 'utf8').match(/\bit\('[A-Z]\d[^:]*:/g)?.join() ?? '';
    const cases = readFileSync(join(projectDirectory, 'src/store/recovery/cases.ts'), 'utf8');
    const accepted = cases.match(/(?<=^ \*   )[A-Z]\d/gm) ?? [];
    assert.equal(accepted.length, 10);
    const labels = [...accepted, ...Object.keys(refusals)];
    assert.deepEqual(labels.filter((label) => !titles.includes(label)), []);
  });

  it('never reuses an id, even after a removal and a restart', async () => {
    const content = await stopAfter(async (opened) => {
      await writePeople('a', 'b')(opened);
      await opened.store.write((tx) => tx.of(opened.people).remove(2));
    });
    const again = await killAfter(async (opened) => {
      await writePeople('c')(opened);
      await opened.store.write((tx) => tx.of(opened.people).remove(3));
    }, content);
    const opened = await startWith(again);
    const { id } = await opened.store.write((tx) => tx.of(opened.people).insert(createPerson('d')));
    assert.equal(id, 4);
  });
});

describe('a collection without further ids', () => {
  const header = (text: string): string => text.replace('"nextId":3', `"nextId":${2 ** 52}`);
  const record = (text: string): string => header(text).replace('{"id":2,', `{"id":${2 ** 52 - 1},`);
  for (const [what, ends] of Object.entries({ header, record })) {
    it(`refuses another record if a ${what} says so`, async () => {
      const content = await stopAfter(writePeople('a', 'b'));
      const opened = await startWith(fixDigest(editFile(content, 'people.json', ends), 'people.json'));
      const { store, people } = opened;
      await assert.rejects(store.write((tx) => tx.of(people).insert(createPerson('c'))), { code: 'storage_full' });
      await store.write((tx) => tx.of(people).replace(1, createPerson('A')));
      await store.close();
      assert.equal(joinNames(await startWith(opened.disk.content())), 'Ab');
    });
  }
});

describe('a small store with changed or missing bytes', () => {
  it('is always refused after a clean stop', () => {
    assert.ok(damagedAfterStop() > 1000);
  });

  it('is refused after a crash, or keeps a prefix and says so', () => {
    const { refused: refusals, prefixes } = damagedAfterCrash();
    assert.ok(refusals > 1000 && prefixes > 50, `${refusals} refused, ${prefixes} prefixes`);
  });
});
