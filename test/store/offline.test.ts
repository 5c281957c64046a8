import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Files } from '../../src/store/files.ts';
import { encodeLine, manifestBody } from '../../src/store/journal-format.ts';
import { copyStore, type CopyOptions } from '../../src/store/offline.ts';
import { LockedError } from '../../src/store/store.ts';
import {
  dropLine,
  edit,
  inBoth,
  journalOf,
  killedAfter,
  names,
  options,
  start,
  stoppedAfter,
  textOf,
  write,
  type Content,
} from './content.ts';
import { all, makeStore, person, processTable, seeded, seededRandom, steppingClock, startStore } from './fixtures.ts';
import { crashStates, stateOf } from './model.ts';
import { afterCrash, SimulatedDisk } from './simulated-disk.ts';

const credentials = { collections: ['notes'], files: ['keys.json'] };
const copying = (restores: boolean): CopyOptions => ({
  clock: steppingClock(),
  random: seededRandom(5),
  processes: processTable(),
  credentials,
  restores,
});
const backUp = (from: Files, to: Files): ReturnType<typeof copyStore> => copyStore(from, to, copying(false));
const restore = (from: Files, to: Files): ReturnType<typeof copyStore> => copyStore(from, to, copying(true));

describe('check', () => {
  it('finds nothing wrong with a good store, and changes nothing', async () => {
    for (const content of [await stoppedAfter(write('a', 'b')), await inBoth(), new Map()]) {
      const disk = new SimulatedDisk(content);
      const report = await makeStore({ ...options, files: disk }).check();
      assert.deepEqual(report.damage, []);
      assert.deepEqual(disk.content(), content);
    }
  });

  it('says what a start would say, with a running server too', async () => {
    const { store, people, disk } = await start(new Map());
    await store.write((tx) => tx.insert(people, person('a')));
    const { damage, notices, collections } = await makeStore({ ...options, files: disk }).check();
    assert.deepEqual(damage, []);
    assert.deepEqual(notices, ['the store is running, or was not stopped; its last commit is 1']);
    assert.deepEqual(collections, [{ name: 'people', records: 1 }, { name: 'notes', records: 0 }]);
    await store.close();
  });

  it('finds the damage of every file, with its place', async () => {
    let content = await inBoth();
    content = edit(content, 'people.json', (text) => text.replace('"name":"b"', '"name":"B"'));
    content = edit(content, 'notes.json', (text) => text.slice(0, -10));
    content = edit(content, journalOf(content), (text) => text.replace('"c"', '"x"'));
    const { damage } = await makeStore({ ...options, files: new SimulatedDisk(content) }).check();
    assert.deepEqual(damage.map(({ label, file }) => `${label} ${file}`).sort(), [
      `J2 ${journalOf(content)}`,
      'S1 notes.json',
      'S2 people.json',
    ]);
  });
});

const without = (content: Content, name: string): Content => new Map([...content].filter(([each]) => each !== name));

async function repaired(content: Content): Promise<Awaited<ReturnType<typeof start>> & { lost: readonly string[] }> {
  const disk = new SimulatedDisk(content);
  const report = await makeStore({ ...options, files: disk, random: seededRandom(9) }).repair(credentials);
  assert.ok(report.damage.length > 0);
  const told = report.lost.map((line) => line.split(', byte ')[0] ?? '');
  const damaged = [...report.damage.map(({ file }) => file), ...told].filter((file) => content.has(file));
  const after = disk.content();
  for (const file of damaged) {
    const copy = report.aside.find((name) => name.startsWith(file));
    assert.deepEqual(after.get(copy ?? ''), content.get(file), `${file} is not kept`);
  }
  return { ...(await start(after)), lost: report.lost };
}

describe('repair', () => {
  it('leaves a good store alone', async () => {
    const content = await inBoth();
    const disk = new SimulatedDisk(content);
    const report = await makeStore({ ...options, files: disk }).repair();
    assert.deepEqual(report.damage, []);
    assert.deepEqual(disk.content(), content);
  });

  it('accepts a snapshot that was edited by hand, in a new epoch', async () => {
    const content = await stoppedAfter(write('a', 'b', 'c'));
    const before = await start(content);
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
    ];
    for (const [what, change, expected] of edits) {
      const opened = await repaired(edit(content, 'people.json', change));
      assert.equal(names(opened), expected, what);
      assert.deepEqual(opened.lost, [], what);
      assert.notEqual(opened.store.epoch, before.store.epoch);
      const { id } = await opened.store.write((tx) => tx.insert(opened.people, person('new')));
      assert.equal(id, expected.endsWith('i') ? 10 : 4, what);
    }
  });

  it('keeps the good lines of a snapshot that is no JSON any more, however their members stand', async () => {
    const content = await stoppedAfter(write('a', 'b', 'c'));
    const edits: [string, (text: string) => string][] = [
      ['revision before id', (text) => text.replace(/("id":\d+),("revision":\d+)/g, '$2,$1')],
      ['spaces', (text) => text.replace(/\{"id":/g, '  { "id": ')],
      ['line ends of Windows', (text) => text.replaceAll('\n', '\r\n')],
    ];
    for (const [what, change] of edits) {
      const torn = (text: string): string => change(text).replace('"name":"b"', '"name":"b');
      const opened = await repaired(edit(content, 'people.json', torn));
      assert.equal(names(opened), 'ac', what);
      assert.equal(opened.lost.filter((line) => line.endsWith('this line is not a record')).length, 1, what);
    }
  });

  it('keeps everything but what is damaged, and says what that is', async () => {
    const content = await inBoth();
    const journal = journalOf(content);
    const middle = await repaired(edit(content, journal, (text) => text.replace('"d"', '"x"')));
    assert.equal(names(middle), 'abce');
    const offset = textOf(content, journal).split('\n').slice(0, 2).join('\n').length + 1;
    assert.deepEqual(middle.lost, [
      `${journal}, byte ${offset}: this line is damaged`,
      'people: which ids were given is not known, so the next one is 1000006',
      'notes: which ids were given is not known, so the next one is 1000001',
    ]);

    // A start takes a damaged last line for a torn write; here it is lost as any other.
    const edited = edit(content, 'people.json', (text) => text.replace('"name":"a"', '"name":"A"'));
    const last = await repaired(edit(edited, journal, (text) => text.replace('"e"', '"x"')));
    assert.equal(names(last), 'Abcd');
    assert.match(last.lost.join(), new RegExp(`^${journal}, byte \\d+: this line is damaged,`));

    const line = await repaired(edit(content, 'people.json', (text) => text.replace('{"id":1,', '{"id"!1,')));
    assert.equal(names(line), 'bcde');
    assert.equal(line.lost.length, 1);

    const latin = new Map(content);
    const snapshot = textOf(content, 'people.json');
    latin.set('people.json', Buffer.from(snapshot.replace('"b"', '"\xe4"'), 'latin1'));
    const became = `people.json, byte ${snapshot.indexOf('{"id":2,')}: bytes that are not UTF-8 became U+FFFD`;
    assert.deepEqual((await repaired(latin)).lost, [became]);

    const header = await repaired(edit(content, 'people.json', dropLine(0)));
    assert.equal(names(header), 'abcde');

    const twice = await repaired(edit(content, 'people.json', (text) => text.replace('"id":2,', '"id":1,')));
    assert.equal(names(twice), 'acde');
    assert.match(twice.lost.join(), /^people\.json, byte \d+: another record has its id$/);

    const key = await repaired(edit(content, 'people.json', (text) => text.replace('b@', 'a@')));
    assert.equal(names(key), 'acde');
  });

  it('tells of each record in an edited snapshot that the journal has in another version', async () => {
    const content = await killedAfter(async (opened) => {
      const { store, people } = opened;
      await write('a', 'b', 'c', 'd')(opened);
      await store.checkpoint();
      for (const name of ['x', 'y']) await store.write((tx) => tx.replace(people, 2, person(name)));
      for (const id of [1, 3]) await store.write((tx) => tx.replace(people, id, person(`p${id}`)));
      await store.write((tx) => [tx.remove(people, 3), tx.insert(people, person('e'))]);
    });
    const edited = edit(content, 'people.json', (text) => dropLine(1)(text.replace('"name":"d"', '"name":"D"')));
    const line = '{"id":9,"name":"i","email":"i","role":""},\n';
    const added = edit(edited, 'people.json', (text) => text.replace('{"id":4', `${line}$&`));
    for (const [changed, expected] of [[edited, 'p1yDe'], [added, 'p1yDei']] as const) {
      const opened = await repaired(changed);
      assert.equal(names(opened), expected);
      const overlaid = (id: number): string =>
        `people.json, byte 0: record ${id} is as ${journalOf(content)} has it: an edit of it is lost`;
      assert.deepEqual(opened.lost, [2, 1, 3].map(overlaid));
    }
  });

  it('keeps the order of the ids where only the journal has the first ones', async () => {
    const content = await killedAfter(async ({ store, people }) => {
      await store.write((tx) => {
        for (let id = 1; id <= 1030; id += 1) tx.insert(people, person(`p${id}`));
        for (let id = 2; id <= 1023; id += 1) tx.remove(people, id);
      });
      await store.checkpoint();
      await store.write((tx) => tx.replace(people, 1, person('q')));
    });
    const opened = await repaired(edit(content, 'people.json', (text) => text.replace('{"id":1,', '{"id"!1,')));
    assert.deepEqual(all(opened.people).map(({ id }) => id), [1, 1024, 1025, 1026, 1027, 1028, 1029, 1030]);
    assert.equal(opened.people.get(1)?.name, 'q');
  });

  it('goes on from what is there when a file is missing', async () => {
    const content = await inBoth();
    const noJournal = new Map(content);
    noJournal.delete(journalOf(content));
    assert.equal(names(await repaired(noJournal)), 'ab');
    const noSnapshot = new Map(content);
    noSnapshot.delete('people.json');
    assert.equal(names(await repaired(noSnapshot)), 'cde');
    const noNewest = await repaired(new Map(content).set('people.json.7.tmp', Buffer.from('{"format"')));
    assert.equal(names(noNewest), 'abcde');
    assert.match(noNewest.lost.join(), /^journal-7\.jsonl, byte 0: it is not there,people: which ids/);
  });

  it('never gives an id again, and ends credentials where anything is lost', async () => {
    const content = await stoppedAfter(async (opened) => {
      await write('a', 'b', 'c')(opened);
      await opened.store.write((tx) => tx.insert(opened.notes, { person: 3, text: "a session of c's" }));
      await opened.store.write((tx) => tx.remove(opened.people, 3));
    }, new Map([['keys.json', Buffer.from('{}')]]));
    const journal = journalOf(content);
    const old = edit(content, journal, () => {
      const body = textOf(content, journal).replaceAll(/,"nextId":\d+/g, '').slice(0, -',"crc":"00000000"}\n'.length);
      return encodeLine(body, 0).bytes.toString();
    });
    const unreadable = (text: string): string => text.replace('"collection":"people"', '"collection":"PEOPLE"');
    const damages: [string, Content, RegExp | undefined, string, number][] = [
      ['a byte order mark', edit(content, 'people.json', (text) => `\uFEFF${text}`), undefined, 'ab', 4],
      ['a snapshot that is gone', without(content, 'people.json'), /^people\.json, byte 0: it is not there$/, '', 4],
      ['an empty one', edit(content, 'people.json', () => ''), /^people\.json, byte 0: its first line/, '', 4],
      ['one without its header', edit(content, 'people.json', dropLine(0)), /its first line is not a header$/, 'ab', 4],
      ['one cut off after a line', edit(content, 'people.json', dropLine(-2)), /its last line is missing$/, 'ab', 4],
      ['one without records', edit(content, 'people.json', () => '{}'), /it has no records/, '', 4],
      ['no journal', without(content, journal), /the next one is 1000004/, 'ab', 1_000_004],
      ['an empty journal', edit(content, journal, () => ''), /the next one is 1000004/, 'ab', 1_000_004],
      ['a damaged one', edit(content, journal, (text) => text.replace('after', 'AFTER')), /next/, 'ab', 1_000_004],
      ['nor a header', without(edit(content, 'people.json', unreadable), journal), /next/, 'ab', 1_000_004],
      ['no header, a journal of a former version', edit(old, 'people.json', unreadable), /first/, 'ab', 1_000_004],
      ['no snapshot, a journal of that version', without(old, 'people.json'), /next/, '', 1_000_001],
    ];
    for (const [what, damaged, lost, expected, id] of damages) {
      const opened = await repaired(damaged);
      assert.equal(names(opened), expected, what);
      const next = await opened.store.write((tx) => tx.insert(opened.people, person('new')));
      assert.equal(next.id, id, what);
      assert.match(opened.lost.join('\n'), lost ?? /^$/m, what);
      assert.equal(opened.notes.size, lost === undefined ? 1 : 0, what);
      assert.equal(opened.disk.content().has('keys.json'), lost === undefined, what);
      const note = await opened.store.write((tx) => tx.insert(opened.notes, { person: 1, text: 'new' }));
      assert.ok(note.id > 1, what);
    }
  });

  it('tells what files that do not belong together have lost', async () => {
    const first = await stoppedAfter(write('a'));
    const second = await stoppedAfter(write('b'), first);
    const older = new Map(second).set('people.json', first.get('people.json') ?? Buffer.alloc(0));
    const ends = /^people\.json, byte 0: it ends with 1: what came after it is missing$/;
    assert.match((await repaired(older)).lost.join(), ends);
    const foreign = edit(second, 'people.json', (text) => text.replace(/"epoch":"\w+"/, '"epoch":"1234"'));
    // Either of them may be another store's: then nothing tells which ids our own journal gave.
    const other = /^people\.json, byte 0: it is of another store,people: .* is not known, so the next one is 1000003,/;
    assert.match((await repaired(foreign)).lost.join(), other);
    const newer = new Map(await inBoth());
    newer.set('people.json', (await stoppedAfter(write('f'), newer)).get('people.json') ?? Buffer.alloc(0));
    const missing = `${journalOf(newer)}, byte 0: it ends before 6,people: which`;
    assert.ok((await repaired(newer)).lost.join().startsWith(missing));
  });

  const runs: [string, (text: string) => string, string, number][] = [
    ['loses nothing, and keeps sessions', (text) => text.replace('"name":"b"', '"name":"B"'), 'aBcde', 1],
    ['loses a record, and ends sessions', (text) => text.replace('{"id":1,', '{"id"!1,'), 'bcde', 0],
  ];
  for (const [what, damage, expected, sessions] of runs) {
    it(`can be run again after a crash at any operation where it ${what}`, async () => {
      const content = await killedAfter(async (opened) => {
        await write('a', 'b')(opened);
        await opened.store.write((tx) => tx.insert(opened.notes, { person: 1, text: 'a session' }));
        await opened.store.checkpoint();
        await write('c', 'd', 'e')(opened);
      });
      const disk = new SimulatedDisk(edit(content, 'people.json', damage));
      const begun = disk.operations.length;
      await makeStore({ ...options, files: disk, random: seededRandom(5) }).repair(credentials);
      for (let length = begun; length <= disk.operations.length; length += 1) {
        const left = afterCrash(disk.operations.slice(0, length), new Set());
        left.delete('lock');
        const again = new SimulatedDisk(left);
        await makeStore({ ...options, files: again, random: seededRandom(9) }).repair(credentials);
        const opened = await start(again.content());
        assert.equal(names(opened), expected, `crash after ${length - begun} operations`);
        assert.equal(opened.notes.size, sessions, `crash after ${length - begun} operations`);
      }
    });
  }

  it('keeps its hands off what a newer version wrote', async () => {
    const content = edit(await inBoth(), 'people.json', (text) => text.replace('"format":1', '"format":2'));
    const disk = new SimulatedDisk(content);
    await assert.rejects(makeStore({ ...options, files: disk }).repair(), { label: 'S4' });
    assert.deepEqual(disk.content(), content);
  });

  it('keeps its hands off a store that is running', async () => {
    const { disk } = await start(new Map());
    await assert.rejects(makeStore({ ...options, files: disk }).repair(), LockedError);
  });
});

describe('backup and restore', () => {
  it('copies a running store as of one commit, keys included, and restores it with a new epoch', async () => {
    const running = await start(new Map([['keys.json', Buffer.from('{"secret":1}')]]));
    await running.store.write((tx) => tx.insert(running.notes, { person: 1, text: 'a session' }));
    await write('a', 'b')(running);
    await running.store.checkpoint();
    await write('c')(running);
    const backup = new SimulatedDisk();
    const report = await backUp(running.disk, backup);
    assert.deepEqual(report.alongside, ['keys.json']);
    const files = ['journal-1.jsonl', 'keys.json', 'notes.json', 'people.json'];
    assert.deepEqual([...backup.content().keys()].sort(), files);
    await write('d')(running);
    await running.store.close();

    const target = new SimulatedDisk(new Map([['.gitignore', Buffer.from('*')]]));
    await restore(backup, target);
    const restored = await startStore({ ...options, files: target });
    assert.equal(names(restored), 'abc');
    assert.deepEqual(restored.notices, []);
    assert.notEqual(restored.store.epoch, running.store.epoch);
    const { id } = await restored.store.write((tx) => tx.insert(restored.people, person('d')));
    assert.equal(id, 4);
    // No credentials: ids that were given since the backup are given anew.
    assert.ok(!target.content().has('keys.json'));
    assert.equal(restored.notes.size, 0);
    assert.equal((await restored.store.write((tx) => tx.insert(restored.notes, { person: 1, text: '' }))).id, 2);
    // The backup itself is a store, as after a clean stop.
    const opened = await start(backup.content());
    assert.deepEqual(all(opened.people), all(restored.people).slice(0, 3));
    assert.equal(opened.store.status().sequence, 4);
    assert.equal(opened.notes.size, 1);
    assert.equal(opened.store.epoch, running.store.epoch);
  });

  it('leaves out the tail of a write that is under way', async () => {
    const content = await inBoth();
    const torn = edit(content, journalOf(content), (text) => text.slice(0, -4));
    const backup = new SimulatedDisk();
    await backUp(new SimulatedDisk(torn), backup);
    const opened = await start(backup.content());
    assert.equal(names(opened), 'abcd');
    assert.deepEqual(opened.notices, []);
  });

  it('begins anew when a checkpoint comes between', async () => {
    const running = await start(await inBoth());
    const before = stateOf(running);
    let checkpoint: Promise<void> | undefined;
    running.disk.fault = ({ operation, name }) => {
      if (operation === 'read' && name === 'people.json') checkpoint ??= running.store.checkpoint();
      return undefined;
    };
    const backup = new SimulatedDisk();
    await backUp(running.disk, backup);
    await checkpoint;
    const opened = await start(backup.content());
    assert.equal(stateOf(opened), before);
  });

  it('writes to an empty directory only, and reads only what is a store', async () => {
    const content = await inBoth();
    await assert.rejects(
      backUp(new SimulatedDisk(content), new SimulatedDisk(content)),
      { code: 'write_refused' },
    );
    await backUp(new SimulatedDisk(content), new SimulatedDisk(new Map([['lost+found', Buffer.alloc(0)]])));
    await assert.rejects(restore(new SimulatedDisk(), new SimulatedDisk()), { code: 'not_found' });
    const damaged = edit(content, 'people.json', (text) => text.replace('"b"', '"B"'));
    await assert.rejects(restore(new SimulatedDisk(damaged), new SimulatedDisk()), { label: 'S2' });
  });

  it('writes nothing where another process has made a store meanwhile', async () => {
    const [source, target] = [new SimulatedDisk(await inBoth()), new SimulatedDisk()];
    let made: Promise<unknown> | undefined;
    source.fault = ({ operation }) => {
      if (operation === 'read') made ??= target.open('people.json', 'replace');
      return undefined;
    };
    await assert.rejects(restore(source, target), { code: 'write_refused' });
    assert.deepEqual([...target.content().keys()], ['people.json']);
  });

  for (const [what, copyTo] of Object.entries({ backUp, restore })) {
    it(`leaves nothing to start or to repair where ${what} is cut short at any operation`, async () => {
      const target = new SimulatedDisk();
      await copyTo(new SimulatedDisk(new Map([...(await inBoth()), ['keys.json', Buffer.from('{}')]])), target);
      const { operations } = target;
      const isFor = (name: string, kind: string): number =>
        operations.findIndex((each) => each.kind === kind && 'name' in each && each.name === name);
      const [locked, ended] = [isFor('lock', 'create') + 1, isFor('unfinished', 'remove')];
      assert.ok(locked > 0 && ended > locked);
      const next = seeded(1);
      for (let length = locked; length <= ended; length += 1) {
        for (const { dropped, tear } of crashStates(operations, length, next)) {
          const left = without(afterCrash(operations.slice(0, length), dropped, tear), 'lock');
          const where = `killed after ${length} operations, dropped ${[...dropped].join()}`;
          if (left.size === 0) continue;
          const { store, repair } = makeStore({ ...options, files: new SimulatedDisk(left) });
          await assert.rejects(store.start(), { label: 'N3' }, where);
          await assert.rejects(repair(), { label: 'N3' }, where);
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
    await assert.rejects(backUp(new SimulatedDisk(await inBoth()), new Rots()), { label: 'S1' });
  });

  it('makes no file outside its directory, whatever a backup names its collections', async () => {
    for (const name of ['../people', '/etc/people', 'a/b', 'people.json', '', '__proto__', 'PEOPLE']) {
      const collections = new Map([[name, { through: 0, file: false, nextId: 1 }]]);
      const manifest = { journal: 1, closed: true, epoch: 'e', after: 0, predecessor: undefined, collections };
      const backup = new SimulatedDisk(new Map([['journal-1.jsonl', encodeLine(manifestBody(manifest), 0).bytes]]));
      const target = new SimulatedDisk();
      await assert.rejects(restore(backup, target), { label: 'J9' }, JSON.stringify(name));
      assert.deepEqual([...target.content().keys()], []);
    }
  });
});
