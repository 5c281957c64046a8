import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Files } from '../../src/store/disk/files.ts';
import { encodeLine, manifestBody } from '../../src/store/format/journal.ts';
import { readCopy, repairStore, writeCopy, type Copy, type CopyOptions } from '../../src/options/offline/offline.ts';
import { LockedError } from '../../src/store/disk/lock.ts';
import {
  crash,
  listRecords,
  type Content,
  dropLine,
  editFile,
  createSnapshotAndJournal,
  findJournal,
  killAfter,
  createMachine,
  createStore,
  joinNames,
  type Opened,
  options,
  createPerson,
  seedNumbers,
  seedRandom,
  SimulatedDisk,
  startWith,
  startStore,
  createSteppingClock,
  stopAfter,
  readText,
  writePeople,
} from '../support/store/fixtures.ts';
import { crashStates, serializeState } from '../support/store/crashes.ts';

const credentials = { collections: ['notes'], keyFile: 'keys.json' };
const copying = (restores: boolean): CopyOptions => ({
  clock: createSteppingClock(),
  random: seedRandom(5),
  machine: createMachine(),
  credentials,
  restores,
  onProgress: () => undefined,
});

async function backUp(from: Files, to: Files): Promise<Copy> {
  const copy = await readCopy(from, copying(false));
  return writeCopy(to, () => Promise.resolve(copy), copying(false));
}

const restore = (from: Files, to: Files): Promise<Copy> =>
  writeCopy(to, () => readCopy(from, copying(true)), copying(true));

describe('check', () => {
  it('accepts a good store without changing it', async () => {
    for (const content of [await stopAfter(writePeople('a', 'b')), await createSnapshotAndJournal(), new Map()]) {
      const disk = new SimulatedDisk(content);
      const report = await createStore({ ...options, files: disk }).check();
      assert.deepEqual(report.damage, []);
      assert.deepEqual(disk.content(), content);
    }
  });

  it('reports what a start would report, even while a server runs', async () => {
    const { store, people, disk } = await startWith(new Map());
    await store.write((tx) => tx.of(people).insert(createPerson('a')));
    const { damage, notices, collections } = await createStore({ ...options, files: disk }).check();
    assert.deepEqual(damage, []);
    assert.deepEqual(notices, ['the store is running, or was not stopped; its last commit is 1']);
    assert.deepEqual(collections, [{ name: 'people', records: 1 }, { name: 'notes', records: 0 }]);
    await store.close();
  });

  it('locates the damage in every file', async () => {
    let content = await createSnapshotAndJournal();
    content = editFile(content, 'people.json', (text) => text.replace('"name":"b"', '"name":"B"'));
    content = editFile(content, 'notes.json', (text) => text.slice(0, -10));
    content = editFile(content, findJournal(content), (text) => text.replace('"c"', '"x"'));
    const { damage } = await createStore({ ...options, files: new SimulatedDisk(content) }).check();
    assert.deepEqual(damage.map(({ label, file }) => `${label} ${file}`).sort(), [
      `J2 ${findJournal(content)}`,
      'S2 notes.json',
      'S2 people.json',
    ]);
  });
});

const without = (content: Content, name: string): Content => new Map([...content].filter(([each]) => each !== name));

interface Repaired extends Opened {
  readonly disk: SimulatedDisk;
  readonly report: Awaited<ReturnType<typeof repairStore>>;
  /** The problem, such as `S1 people.json: …`. */
  readonly told: readonly string[];
}

/** Repairs to a new directory and starts there. */
async function repaired(content: Content): Promise<Repaired> {
  const [source, target] = [new SimulatedDisk(content), new SimulatedDisk()];
  const report = await createStore({ ...options, files: source, random: seedRandom(9) }).repairTo(target, credentials);
  assert.ok(report.damage.length > 0);
  assert.deepEqual(source.content(), content, 'the old directory stays as it was');
  const told = report.damage.map(({ label, file, problem }) => `${label} ${file}: ${problem}`);
  const opened = await startWith(target.content());
  assert.deepEqual(opened.notices, []);
  return { ...opened, report, told };
}

describe('repair', () => {
  it('leaves a good store unchanged', async () => {
    const content = await createSnapshotAndJournal();
    const [source, target] = [new SimulatedDisk(content), new SimulatedDisk()];
    const report = await createStore({ ...options, files: source }).repairTo(target);
    assert.deepEqual([report.damage, report.isLossy], [[], false]);
    assert.deepEqual(source.content(), content);
    assert.deepEqual([...target.content()], []);
  });

  it('accepts a snapshot that was edited by hand, in a new epoch, and keeps credentials', async () => {
    const content = await stopAfter(async (opened) => {
      await writePeople('a', 'b', 'c')(opened);
      await opened.store.write((tx) => tx.of(opened.notes).insert({ person: 1, text: 'a session' }));
    }, new Map([['keys.json', Buffer.from('{}')]]));
    const before = await startWith(content);
    const edits: [string, (text: string) => string, string][] = [
      ['a changed value', (text) => text.replace('"name":"b"', '"name":"B"'), 'aBc'],
      ['a removed line', dropLine(2), 'ac'],
      ['a removed last line, its comma left', dropLine(3), 'ab'],
      [
        'an added line',
        (text) => text.replace('\n]', ',\n{"id":9,"name":"i","email":"i","role":"x"}\n]'),
        'abci',
      ],
      [
        'an added line that begins as the header does',
        (text) => text.replace('\n]', ',\n{"format":1,"id":9,"name":"i","email":"i","role":"x"}\n]'),
        'abci',
      ],
      ['a lone record beside the header', (text) => text.replace('[\n', '[').replace(/,\n.*,\n.*/, ''), 'a'],
      ['a slip in the last name of the header', (text) => text.replace('"records":', '"recods":'), 'abc'],
      ['formatting by another tool', (text) => JSON.stringify(JSON.parse(text), null, 2), 'abc'],
      ['the same with a byte order mark', (text) => `\uFEFF${JSON.stringify(JSON.parse(text))}\n`, 'abc'],
      ['one record over several lines', (text) => text.replace('{"id":2,', '{\n"id":2,\n'), 'abc'],
      ['lines in another order', (text) => text.replace(/(\{"id":1,.*),\n(\{"id":2,.*),\n/, '$2,\n$1,\n'), 'abc'],
      ['line ends of Windows', (text) => text.replaceAll('\n', '\r\n'), 'abc'],
    ];
    for (const [what, change, expected] of edits) {
      const opened = await repaired(editFile(content, 'people.json', change));
      assert.equal(joinNames(opened), expected, what);
      assert.deepEqual(opened.report.damage.map(({ label }) => label), ['S2'], what);
      assert.notEqual(opened.store.epoch, before.store.epoch);
      assert.ok(opened.disk.content().has('keys.json'), what);
      assert.equal(opened.notes.size, 1, what);
      const { id } = await opened.store.write((tx) => tx.of(opened.people).insert(createPerson('new')));
      assert.equal(id, expected.endsWith('i') ? 10 : 4, what);
    }
  });

  it('keeps the good lines of a snapshot that is no longer JSON', async () => {
    const content = await stopAfter(writePeople('a', 'b', 'c'));
    const edits: [string, (text: string) => string][] = [
      ['revision before id', (text) => text.replace(/("id":\d+),("revision":\d+)/g, '$2,$1')],
      ['spaces', (text) => text.replace(/\{"id":/g, '  { "id": ')],
      ['line ends of Windows', (text) => text.replaceAll('\n', '\r\n')],
    ];
    for (const [what, change] of edits) {
      const torn = (text: string): string => change(text).replace('"name":"b"', '"name":"b');
      const opened = await repaired(editFile(content, 'people.json', torn));
      assert.equal(joinNames(opened), 'ac', what);
      assert.deepEqual(opened.report.damage.map(({ label }) => label), ['S1'], what);
    }
  });

  it('keeps the good lines of a damaged snapshot beyond the length of a string', async (t) => {
    const content = await stopAfter(writePeople('a', 'b', 'c'));
    const damaged = editFile(content, 'people.json', (text) => text.replace('"name":"b"', '"name":"b'));
    const length = damaged.get('people.json')?.length;
    const { toString } = Buffer.prototype;
    t.mock.method(Buffer.prototype, 'toString', function (this: Buffer, ...range: []): string {
      if (range.length > 0 || this.length !== length) return toString.apply(this, range);
      throw Object.assign(new Error('Cannot create a string longer than this'), { code: 'ERR_STRING_TOO_LONG' });
    });
    const opened = await repaired(damaged);
    assert.equal(joinNames(opened), 'ac');
    assert.deepEqual(opened.report.damage.map(({ label }) => label), ['S1']);
  });

  it('keeps everything except the damage, and reports that', async () => {
    const content = await createSnapshotAndJournal();
    const journal = findJournal(content);
    const people = readText(content, 'people.json');
    const offset = readText(content, journal).split('\n').slice(0, 2).join('\n').length + 1;
    const latin = Buffer.from(people.replace('"b"', '"\xe4"'), 'latin1');
    const cases: [string, Content, string, RegExp][] = [
      [
        'a line of the journal',
        editFile(content, journal, (text) => text.replace('"d"', '"x"')),
        'abc',
        new RegExp(`^J2 ${journal}: .*byte ${offset}: .*: it does not fit, before 1 line and 0 journals \\[J2\\]$`),
      ],
      [
        'a line of the snapshot',
        editFile(content, 'people.json', (text) => text.replace('{"id":1,', '{"id"!1,')),
        'bcde',
        /^S1 people\.json: [^,]*, byte \d\d+: [^,]*$/,
      ],
      ['text that is not UTF-8', new Map(content).set('people.json', latin), 'a\uFFFDcde', /^S1 .*UTF-8[^,]*$/],
      ['a header', editFile(content, 'people.json', dropLine(0)), 'abcde', /^S1 .*it is not a header \[S1\],J7 /],
      [
        'an id that is there twice',
        editFile(content, 'people.json', (text) => text.replace('"id":2,', '"id":1,')),
        'acde',
        /^S1 people\.json: .*another record has the id 1 \[S1\]$/,
      ],
    ];
    for (const [what, damaged, expected, told] of cases) {
      const opened = await repaired(damaged);
      assert.equal(joinNames(opened), expected, what);
      assert.match(opened.told.join(), told, what);
      assert.ok(opened.report.isLossy, what);
    }

    // A start and a repair take the same line for a write that was cut short.
    const edited = editFile(content, 'people.json', (text) => text.replace('"name":"a"', '"name":"A"'));
    const last = await repaired(editFile(edited, journal, (text) => text.replace('"e"', '"x"')));
    assert.equal(joinNames(last), 'Abcd');
    assert.ok(!last.report.isLossy);
  });

  it('prefers a killed server\'s journal to an edited snapshot', async () => {
    const content = await killAfter(async (opened) => {
      const { store, people } = opened;
      await writePeople('a', 'b', 'c', 'd')(opened);
      await store.checkpoint();
      await store.write((tx) => tx.of(people).replace(1, createPerson('p1')));
      await writePeople('e')(opened);
    });
    const edited = editFile(content, 'people.json', (text) =>
      dropLine(3)(text.replace('"name":"a"', '"name":"A"').replace('"name":"d"', '"name":"D"')));
    const opened = await repaired(edited);
    assert.equal(joinNames(opened), 'p1bDe');
    assert.deepEqual(opened.report.damage.map(({ label }) => label), ['S2']);
  });

  it('keeps the order of ids if only the journal has the first ones', async () => {
    const content = await killAfter(async ({ store, people }) => {
      await store.write((tx) => {
        for (let id = 1; id <= 1030; id += 1) tx.of(people).insert(createPerson(`p${id}`));
        for (let id = 2; id <= 1023; id += 1) tx.of(people).remove(id);
      });
      await store.checkpoint();
      await store.write((tx) => tx.of(people).replace(1, createPerson('q')));
    });
    const opened = await repaired(editFile(content, 'people.json', (text) => text.replace('{"id":1,', '{"id"!1,')));
    assert.deepEqual(listRecords(opened.people).map(({ id }) => id), [1, 1024, 1025, 1026, 1027, 1028, 1029, 1030]);
    assert.equal(opened.people.get(1)?.name, 'q');
  });

  it('continues without a missing file', async () => {
    const content = await createSnapshotAndJournal();
    assert.equal(joinNames(await repaired(without(content, findJournal(content)))), 'ab');
    assert.equal(joinNames(await repaired(without(content, 'people.json'))), 'cde');
  });

  it('never reuses an id, and ends credentials if anything is lost', async () => {
    const content = await stopAfter(async (opened) => {
      await writePeople('a', 'b', 'c')(opened);
      await opened.store.write((tx) => tx.of(opened.notes).insert({ person: 3, text: "a session of c's" }));
      await opened.store.write((tx) => tx.of(opened.people).remove(3));
    }, new Map([['keys.json', Buffer.from('{}')]]));
    const journal = findJournal(content);
    const damages: [string, Content, RegExp, string, number][] = [
      ['a snapshot that is gone', without(content, 'people.json'), /^S5 people\.json/, '', 1_000_004],
      [
        'an empty one',
        editFile(content, 'people.json', () => ''),
        /^S1 people\.json: .* it is not a header/m,
        '',
        1_000_004,
      ],
      ['one without its header', editFile(content, 'people.json', dropLine(0)), /^S1 /, 'ab', 1_000_004],
      [
        'one cut off after a line',
        editFile(content, 'people.json', dropLine(-2)),
        /last line is missing/,
        'ab',
        1_000_004,
      ],
      ['one without records', editFile(content, 'people.json', () => '{}'), /^S1 /, '', 1_000_004],
      ['no journal', without(content, journal), /^N2 /, 'ab', 1_000_004],
      ['an empty journal', editFile(content, journal, () => ''), /^N2 /m, 'ab', 1_000_004],
      ['a damaged one', editFile(content, journal, (text) => text.replace('after', 'AFTER')), /^N2 /m, 'ab', 1_000_004],
    ];
    for (const [what, damaged, told, expected, id] of damages) {
      const opened = await repaired(damaged);
      assert.equal(joinNames(opened), expected, what);
      const next = await opened.store.write((tx) => tx.of(opened.people).insert(createPerson('new')));
      assert.equal(next.id, id, what);
      assert.match(opened.told.join('\n'), told, what);
      assert.ok(opened.report.isLossy, what);
      assert.equal(opened.notes.size, 0, what);
      assert.ok(!opened.disk.content().has('keys.json'), what);
      const note = await opened.store.write((tx) => tx.of(opened.notes).insert({ person: 1, text: 'new' }));
      assert.ok(note.id > 1_000_000, what);
    }
  });

  it('reports the loss if files do not belong together', async () => {
    const first = await stopAfter(writePeople('a'));
    const second = await stopAfter(writePeople('b'), first);
    const older = new Map(second).set('people.json', first.get('people.json') ?? Buffer.alloc(0));
    assert.match((await repaired(older)).told.join(), /^S5 people\.json: .*it goes through 1, not 2 \[S5\],J7 /);
    const foreign = editFile(second, 'people.json', (text) => text.replace(/"epoch":"\w+"/, '"epoch":"1234"'));
    assert.match((await repaired(foreign)).told.join(), /^S2 people\.json: .*,S3 people\.json: /);
    const newer = new Map(await createSnapshotAndJournal());
    newer.set('people.json', (await stopAfter(writePeople('f'), newer)).get('people.json') ?? Buffer.alloc(0));
    const opened = await repaired(newer);
    assert.match(opened.told.join(), /^S5 people\.json: /);
    assert.equal(opened.store.status().sequence, 6);
  });

  it('keeps several journals up to the first line that does not follow', async () => {
    const { disk, ...opening } = await startWith(await killAfter(writePeople('a', 'b', 'c')));
    disk.fault = ({ operation, name }) =>
      operation === 'open' && name.endsWith('.tmp') ? { code: 'ENOSPC' } : undefined;
    await writePeople('d', 'e')(opening);
    await opening.store.checkpoint();
    await writePeople('f')(opening);
    const all = without(disk.content(), 'lock');
    const damaged = editFile(all, 'journal-2.jsonl', (text) => text.replace('"d"', '"x"'));
    const opened = await repaired(damaged);
    assert.equal(joinNames(opened), 'abc');
    assert.match(opened.told.join(), /^J2 journal-2\.jsonl: .*, before 0 lines and 2 journals \[J2\]$/);
    assert.ok(opened.report.isLossy);
    const gap = await repaired(without(all, 'journal-2.jsonl'));
    assert.equal(joinNames(gap), 'abc');
    assert.match(gap.told.join(), /^J7 journal-3\.jsonl: .*it follows commit 4, and the last one is 3 \[J7\]$/);
  });

  it('keeps a snapshot that is ahead of the readable journal', async () => {
    const content = await createSnapshotAndJournal();
    const ahead = await startWith(content);
    await ahead.store.checkpoint();
    const snapshot = ahead.disk.content().get('people.json') ?? Buffer.alloc(0);
    const mixed = new Map(content).set('people.json', snapshot);
    const opened = await repaired(editFile(mixed, findJournal(content), (text) => text.replace('"c"', '"x"')));
    assert.equal(joinNames(opened), 'abcde');
    assert.equal(opened.store.status().sequence, 5);
  });

  it('ignores another store\'s journal', async () => {
    const content = await killAfter(writePeople('a', 'b'));
    const other = new SimulatedDisk();
    const opened = await startStore({ ...options, files: other, random: seedRandom(2) });
    await writePeople('x', 'y', 'z')(opened);
    const mixed = new Map(content).set('journal-2.jsonl', content.get('journal-1.jsonl') ?? Buffer.alloc(0));
    mixed.set('journal-1.jsonl', other.content().get('journal-1.jsonl') ?? Buffer.alloc(0));
    mixed.set('journal-2.jsonl', Buffer.from(readText(await killAfter(writePeople('c'), content), 'journal-2.jsonl')));
    assert.ok(!joinNames(await repaired(mixed)).includes('x'));
  });

  it('does not touch a newer format', async () => {
    const content = editFile(await createSnapshotAndJournal(), 'people.json', (text) =>
      text.replace('"format":1', '"format":2'),
    );
    const [disk, target] = [new SimulatedDisk(content), new SimulatedDisk()];
    await assert.rejects(createStore({ ...options, files: disk }).repairTo(target), { label: 'S4' });
    assert.deepEqual(disk.content(), content);
    assert.deepEqual([...target.content()], []);
  });

  it('refuses a running store', async () => {
    const { disk } = await startWith(new Map());
    await assert.rejects(createStore({ ...options, files: disk }).repairTo(new SimulatedDisk()), LockedError);
  });

  it('refuses a target that is not empty', async () => {
    const content = editFile(await createSnapshotAndJournal(), 'people.json', (text) => text.replace('"b"', '"B"'));
    const { repairTo } = createStore({ ...options, files: new SimulatedDisk(content) });
    await assert.rejects(repairTo(new SimulatedDisk(content)), { code: 'write_refused' });
  });
});

describe('backup and restore', () => {
  it('copies a running store with its keys as of one commit', async () => {
    const running = await startWith(new Map([['keys.json', Buffer.from('{"secret":1}')]]));
    await running.store.write((tx) => tx.of(running.notes).insert({ person: 1, text: 'a session' }));
    await writePeople('a', 'b')(running);
    await running.store.checkpoint();
    await writePeople('c')(running);
    const backup = new SimulatedDisk();
    const report = await backUp(running.disk, backup);
    assert.equal(String(report.keys), '{"secret":1}');
    const files = ['journal-1.jsonl', 'keys.json', 'notes.json', 'people.json'];
    assert.deepEqual([...backup.content().keys()].sort(), files);
    await writePeople('d')(running);
    await running.store.close();

    const target = new SimulatedDisk(new Map([['.gitignore', Buffer.from('*')]]));
    await restore(backup, target);
    const restored = await startStore({ ...options, files: target });
    assert.equal(joinNames(restored), 'abc');
    assert.deepEqual(restored.notices, []);
    assert.notEqual(restored.store.epoch, running.store.epoch);
    const { id } = await restored.store.write((tx) => tx.of(restored.people).insert(createPerson('d')));
    assert.equal(id, 4);
    // No credentials: ids that were given since the backup are given anew.
    assert.ok(!target.content().has('keys.json'));
    assert.equal(restored.notes.size, 0);
    assert.equal((await restored.store.write((tx) => tx.of(restored.notes).insert({ person: 1, text: '' }))).id, 2);
    // The backup itself is a store, as after a clean stop.
    const opened = await startWith(backup.content());
    assert.deepEqual(listRecords(opened.people), listRecords(restored.people).slice(0, 3));
    assert.equal(opened.store.status().sequence, 4);
    assert.equal(opened.notes.size, 1);
    assert.equal(opened.store.epoch, running.store.epoch);
  });

  it('leaves out an unfinished write', async () => {
    const content = await createSnapshotAndJournal();
    const torn = editFile(content, findJournal(content), (text) => text.slice(0, -4));
    const backup = new SimulatedDisk();
    await backUp(new SimulatedDisk(torn), backup);
    const opened = await startWith(backup.content());
    assert.equal(joinNames(opened), 'abcd');
    assert.deepEqual(opened.notices, []);
  });

  it('starts again if a checkpoint intervenes', async () => {
    const running = await startWith(await createSnapshotAndJournal());
    const before = serializeState(running);
    let checkpoint: Promise<void> | undefined;
    running.disk.fault = ({ operation, name }) => {
      if (operation === 'read' && name === 'people.json') checkpoint ??= running.store.checkpoint();
      return undefined;
    };
    const backup = new SimulatedDisk();
    await backUp(running.disk, backup);
    await checkpoint;
    const opened = await startWith(backup.content());
    assert.equal(serializeState(opened), before);
  });

  it('refuses a target that is not empty', async () => {
    const content = await createSnapshotAndJournal();
    await assert.rejects(
      backUp(new SimulatedDisk(content), new SimulatedDisk(content)),
      { code: 'write_refused' },
    );
  });

  it('accepts the root of a new file system', async () => {
    const content = await createSnapshotAndJournal();
    await backUp(new SimulatedDisk(content), new SimulatedDisk(new Map([['lost+found', Buffer.alloc(0)]])));
  });

  it('refuses to restore from an empty directory', async () => {
    await assert.rejects(restore(new SimulatedDisk(), new SimulatedDisk()), { code: 'not_found' });
  });

  it('refuses to restore from a damaged copy', async () => {
    const content = await createSnapshotAndJournal();
    const damaged = editFile(content, 'people.json', (text) => text.replace('"b"', '"B"'));
    await assert.rejects(restore(new SimulatedDisk(damaged), new SimulatedDisk()), { label: 'S2' });
  });

  it('locks its target before it reads anything', async () => {
    const [source, target] = [new SimulatedDisk(await createSnapshotAndJournal()), new SimulatedDisk()];
    await writeCopy(target, async () => {
      await assert.rejects(createStore({ ...options, files: target }).store.start(), LockedError);
      return readCopy(source, copying(true));
    }, copying(true));
    assert.equal(joinNames(await startStore({ ...options, files: target })), 'abcde');
  });

  for (const [what, copyTo] of Object.entries({ backUp, restore })) {
    it(`leaves a directory that does not start if ${what} cannot read or write`, async () => {
      const content = await createSnapshotAndJournal();
      const damaged = new SimulatedDisk(editFile(content, 'people.json', (text) => text.replace('"b"', '"B"')));
      const target = new SimulatedDisk();
      await assert.rejects(copyTo(damaged, target), { label: 'S2' });
      if (copyTo === backUp) assert.deepEqual([...target.content().keys()], [], 'a backup reads first');
      target.fault = ({ operation, name }) =>
        operation === 'write' && name.endsWith('.tmp') ? { code: 'ENOSPC' } : undefined;
      await assert.rejects(copyTo(new SimulatedDisk(content), target));
      target.fault = () => undefined;
      assert.deepEqual([...target.content().keys()], ['unfinished']);
      await assert.rejects(createStore({ ...options, files: target }).store.start(), {
        label: 'N2', message: /run the command again that copied to this directory, or remove this file/,
      });
      await copyTo(new SimulatedDisk(content), target);
      assert.ok(!target.content().has('unfinished'));
      assert.equal(joinNames(await startStore({ ...options, files: target })), 'abcde');
    });
  }

  const repair = async (source: SimulatedDisk, target: SimulatedDisk): Promise<unknown> => {
    const edited = editFile(source.content(), 'people.json', (text) => text.replace('"b"', '"B"'));
    return createStore({ ...options, files: new SimulatedDisk(edited) }).repairTo(target, credentials);
  };
  for (const [what, copyTo] of Object.entries({ backUp, restore, repair })) {
    it(`leaves a directory that does not start if ${what} is interrupted at any operation`, async () => {
      const target = new SimulatedDisk();
      await copyTo(
        new SimulatedDisk(new Map([...(await createSnapshotAndJournal()), ['keys.json', Buffer.from('{}')]])),
        target,
      );
      const { operations } = target;
      const isFor = (name: string, kind: string): number =>
        operations.findIndex((each) => each.kind === kind && 'name' in each && each.name === name);
      const locked = isFor('lock', 'create') + 1;
      const ended = isFor('unfinished', 'remove');
      assert.ok(locked > 0 && ended > locked);
      const next = seedNumbers(1);
      for (let length = locked; length <= ended; length += 1) {
        for (const { dropped, tear } of crashStates(operations, length, next)) {
          const left = without(crash(operations.slice(0, length), dropped, tear), 'lock');
          const where = `killed after ${length} operations, dropped ${[...dropped].join()}`;
          if (left.size === 0) continue;
          const { store, repairTo } = createStore({ ...options, files: new SimulatedDisk(left) });
          await assert.rejects(store.start(), { label: 'N2' }, where);
          const { damage, isLossy } = await repairTo(new SimulatedDisk());
          assert.deepEqual([damage[0]?.label, isLossy], ['N2', true], where);
        }
      }
    });
  }

  it('reads a copy back', async () => {
    class Rots extends SimulatedDisk {
      override async rename(from: string, to: string): Promise<void> {
        await super.rename(from, to);
        if (to === 'people.json') await (await this.open(to, 'replace')).write(Buffer.from('rot'), 0);
      }
    }
    await assert.rejects(backUp(new SimulatedDisk(await createSnapshotAndJournal()), new Rots()), { label: 'S1' });
  });

  it('never writes outside its directory, whatever the collections of a backup are called', async () => {
    for (const name of ['../people', '/etc/people', 'a/b', 'people.json', '', 'a.b', 'ä']) {
      const collections = new Map([[name, { through: 0, file: false, nextId: 1, server: false }]]);
      const manifest = { journal: 1, closed: true, epoch: 'e', after: 0, predecessor: undefined, collections };
      const backup = new SimulatedDisk(new Map([['journal-1.jsonl', encodeLine(manifestBody(manifest), 0).bytes]]));
      const target = new SimulatedDisk();
      await assert.rejects(restore(backup, target), { code: 'not_found' }, JSON.stringify(name));
      assert.deepEqual([...target.content().keys()], ['unfinished']);
    }
  });
});
