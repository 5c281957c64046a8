import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CairnError } from '../../src/base/errors.ts';
import { limits } from '../../src/base/limits.ts';
import { systemClock } from '../../src/base/system.ts';
import type { Answer, Group, CommitLog, LogClient, LogProblem, ReadGroup } from '../../src/store/log.ts';
import { lost as notFirst, memoryLog, storageFull, won } from '../../src/store/log.ts';
import { Memory } from '../../src/store/memory/memory.ts';
import { findOrAddTable, Tables, type Table } from '../../src/store/memory/table.ts';
import { applyChange, listChanges } from '../../src/store/memory/transaction.ts';
import { UniqueKeyError, type RecordChange } from '../../src/store/store.ts';
import { Writer } from '../../src/store/writer.ts';
import {
  listRecords, notes, people, createPerson, seedRandom, startStore, waitTurns, type Note, type Person,
} from '../support/store/fixtures.ts';

/** A log's answer; `lost` has the groups of other writers that came first. */
type FakeAnswer = Answer & { readonly groups?: readonly ReadGroup[] };

interface Fake {
  readonly writer: Writer;
  readonly people: Table<Person>;
  readonly notes: Table<Note>;
  readonly groups: Group[];
  readonly failures: unknown[];
  /** The number of times that the log was asked to confirm. */
  confirmed: number;
  /** The log's next answers; without one, it has won. */
  readonly answers: (FakeAnswer | Promise<FakeAnswer>)[];
  problem: LogProblem | undefined;
  readonly memory: Memory;
  readonly notices: string[];
  readonly clock: { now: () => number; elapsed: () => number };
  /** Publishes groups of others. */
  readonly follow: (groups: readonly ReadGroup[]) => void;
  /** Settles the promise that a closing log waits for. */
  giveUp: () => void;
  readonly client: LogClient;
}

/** A writer on a log that answers as it is told. */
async function fakeLog(bytesMax = Infinity): Promise<Fake> {
  const byName = new Tables();
  const tables = { people: byName.add(people), notes: byName.add(notes) };
  const failures: unknown[] = [];
  const notices: string[] = [];
  const givenUp = new Promise<void>((resolve) => queueMicrotask(() => (fake.giveUp = resolve)));
  const fake: Omit<Fake, 'writer' | 'client'> = {
    ...tables,
    groups: [],
    failures,
    confirmed: 0,
    answers: [],
    problem: undefined,
    memory: new Memory(byName, bytesMax, (notice) => notices.push(notice)),
    notices,
    clock: { now: () => 0, elapsed: () => 0 },
    giveUp: () => undefined,
    follow(groups) {
      for (const group of groups) {
        client?.published(Array.from(listChanges(group), ([change, sequence]) => {
          const applied = applyChange(change, sequence, byName);
          if ('problem' in applied) throw new Error(applied.problem);
          return applied;
        }));
      }
    },
  };
  let client: LogClient | undefined;
  const memory = memoryLog(seedRandom(1));
  const log: CommitLog = {
    ...memory,
    open(given) {
      client = given;
      return memory.open(given);
    },
    append: async (group) => {
      if (group.commits.length === 0) fake.confirmed += 1;
      const { groups = [], ...answer }: FakeAnswer = await (fake.answers.shift() ?? won);
      if (answer.outcome === 'won' && group.commits.length > 0) fake.groups.push(group);
      const follow = async () => fake.follow(groups);
      if (groups.length > 0) client?.between(follow).catch((error: unknown) => client?.onFailure(error));
      return answer;
    },
    get problem() {
      return fake.problem;
    },
    close: async (answered) => void (await Promise.race([answered, givenUp])),
  };
  const onFailure = (error: unknown): void => void failures.push(error);
  const writer = new Writer({ log, tables: byName, memory: fake.memory, clock: fake.clock, onFailure });
  await writer.start();
  assert.ok(client);
  return Object.assign(fake, { writer, client });
}

const foreign = (first: number, ...names: string[]): ReadGroup => ({
  first,
  commits: names.map((name, at) => [['people', { id: first + at, revision: first + at, ...createPerson(name) }]]),
});

const lost = (...groups: ReadGroup[]): FakeAnswer => ({ ...notFirst, groups });

describe('a writer whose log is shared with other processes', () => {
  it('applies earlier groups and runs its batch again', async () => {
    const { writer, people, answers, groups } = await fakeLog();
    answers.push(lost(foreign(1, 'far', 'away')), lost(foreign(3, 'again')));
    const seen: number[] = [];
    const insert = (name: string): Promise<Person> =>
      writer.write((tx) => {
        seen.push([...tx.of(people).referring('role', 'member')].length);
        return tx.of(people).insert(createPerson(name));
      });
    const written = await Promise.all([insert('ann'), insert('bob')]);
    assert.deepEqual(seen, [0, 1, 2, 3, 3, 4]);
    assert.deepEqual(written.map(({ id, revision }) => [id, revision]), [[4, 4], [5, 5]]);
    assert.deepEqual(listRecords(people).map(({ name }) => name), ['far', 'away', 'again', 'ann', 'bob']);
    assert.deepEqual(groups.map(({ first, commits }) => [first, commits.length]), [[4, 2]]);
    const { sequence, commits } = writer.status();
    assert.deepEqual([sequence, commits], [5, 5]);
  });

  it('runs a lost batch again in order, before waiting writes', async () => {
    const { writer, people, answers } = await fakeLog();
    const ran: string[] = [];
    const insert = (name: string): Promise<Person> =>
      writer.write((tx) => {
        ran.push(name);
        return tx.of(people).insert(createPerson(name));
      });
    let later: Promise<Person>[] = [];
    const inFlight = waitTurns(3).then(() => {
      later = [insert('dan')];
      return lost(foreign(1, 'far'));
    });
    answers.push(inFlight);
    await Promise.all(['ann', 'bob', 'cy'].map(insert));
    await Promise.all(later);
    assert.deepEqual(ran, ['ann', 'bob', 'cy', 'ann', 'bob', 'cy', 'dan']);
    assert.deepEqual(listRecords(people).map(({ name }) => name), ['far', 'ann', 'bob', 'cy', 'dan']);
  });

  it('decides refusals again', async () => {
    const { writer, people, answers } = await fakeLog();
    answers.push(lost(foreign(1, 'far')));
    const first = writer.write((tx) => {
      if (tx.of(people).get(1) !== undefined) throw new TypeError('too late');
      return tx.of(people).insert(createPerson('ann'));
    });
    // Refused where the first one succeeds.
    const second = writer.write((tx) => tx.of(people).insert(createPerson('ann')));
    await assert.rejects(first, TypeError);
    assert.equal((await second).id, 2);
  });

  it('notifies listeners of each group once, in commit order, before the callers', async () => {
    const { writer, people, notes, answers } = await fakeLog();
    const told: string[] = [];
    writer.onPublished((changes: readonly RecordChange[]) =>
      void told.push(changes.map(({ collection, id, record, sequence }) =>
        `${sequence} ${collection.name} ${record === undefined ? 'without' : ''} ${id}`).join(', ')));
    answers.push(lost(foreign(1, 'far', 'away')));
    const writing = writer.write((tx) => {
      tx.of(people).remove(1);
      tx.of(notes).insert({ person: 2, text: 'x' });
    }).then(() => told.push('answered'));
    const refused = assert.rejects(writer.write((tx) => tx.of(people).replace(9, createPerson('x'))));
    await Promise.all([writing, refused, writer.write((tx) => tx.of(people).remove(2))]);
    assert.deepEqual(told, [
      '1 people  1, 2 people  2',
      '3 people without 1, 3 notes  1, 4 people without 2',
      'answered',
    ]);
  });

  it('responds only once the batch is confirmed', async () => {
    const { writer, people, answers } = await fakeLog();
    let confirm: (answer: Answer) => void = () => undefined;
    answers.push(new Promise((resolve) => (confirm = resolve)));
    const settled: string[] = [];
    const works = [
      writer.write((tx) => tx.of(people).insert(createPerson('ann'))),
      writer.write((tx) => tx.of(people).insert(createPerson('ann'))),
      writer.write((tx) => tx.of(people).find('email', createPerson('ann').email)),
    ];
    const outcomes = works.map((work) => work.then(
      (record) => void settled.push(`${record?.id}`),
      (error: unknown) => void settled.push(error instanceof UniqueKeyError ? 'taken' : String(error)),
    ));
    await waitTurns(5);
    assert.deepEqual([settled, people.size], [[], 0]);
    confirm(won);
    await Promise.all(outcomes);
    assert.deepEqual(settled, ['1', 'taken', '1']);
  });

  it('confirms a batch without changes, and runs it again if other groups appear', async () => {
    const fake = await fakeLog();
    const { writer, people, answers, groups } = fake;
    answers.push(lost(foreign(1, 'far')));
    assert.equal((await writer.write((tx) => tx.of(people).get(1)))?.name, 'far');
    assert.deepEqual([fake.confirmed, groups.length], [2, 0]);
  });

  it('fails if a group cannot be applied', async () => {
    const { writer, people, answers, failures } = await fakeLog();
    answers.push(lost({ first: 1, commits: [[['strangers', 1]]] }));
    // Nothing of this was written, since another group was first.
    await assert.rejects(writer.write((tx) => tx.of(people).insert(createPerson('ann'))), { code: 'store_failed' });
    assert.match(String(failures), /it names a collection that the manifest does not list/);
  });
});

describe('a writer whose log does not respond', () => {
  /** An answer that a test gives later. */
  function later(fake: Fake): (answer: FakeAnswer) => void {
    let give: (answer: FakeAnswer) => void = () => undefined;
    fake.answers.push(new Promise((resolve) => (give = resolve)));
    return (answer) => give(answer);
  }

  const insert = ({ writer, people }: Fake, name: string): Promise<Person> =>
    writer.write((tx) => tx.of(people).insert(createPerson(name)));

  const unavailable = new CairnError('store_unavailable', 'Cannot reach the log', { retryAfterSeconds: 2 });

  async function stall(fake: Fake): Promise<void> {
    const inFlight = assert.rejects(insert(fake, 'ann'), { code: 'outcome_unknown' });
    const reading = assert.rejects(fake.writer.write(() => undefined), { code: 'store_unavailable' });
    await waitTurns(3);
    const waiting = assert.rejects(insert(fake, 'bob'), { code: 'store_unavailable', retryAfterSeconds: 2 });
    fake.client.unavailable(unavailable);
    await Promise.all([inFlight, reading, waiting]);
    await assert.rejects(insert(fake, 'cat'), { code: 'store_unavailable' });
  }

  it('resumes once the outcome of its batch is known', async () => {
    const fake = await fakeLog();
    const answer = later(fake);
    await stall(fake);
    answer(won);
    await waitTurns(2);
    await assert.rejects(insert(fake, 'cat'), { code: 'store_unavailable' });
    fake.client.unavailable(undefined);
    assert.deepEqual(listRecords(fake.people).map(({ name }) => name), ['ann']);
    assert.equal((await insert(fake, 'dan')).id, 2);
    assert.deepEqual(fake.failures, []);
  });

  it('drops a batch that finally lost', async () => {
    const fake = await fakeLog();
    const answer = later(fake);
    await stall(fake);
    answer(lost(foreign(1, 'far')));
    fake.client.unavailable(undefined);
    await waitTurns(2);
    assert.equal((await insert(fake, 'dan')).id, 2);
    assert.deepEqual(listRecords(fake.people).map(({ name }) => name), ['far', 'dan']);
  });

  it('abandons the batch when it closes', async () => {
    const fake = await fakeLog();
    const answer = later(fake);
    const written = assert.rejects(insert(fake, 'ann'), { code: 'outcome_unknown' });
    await waitTurns(3);
    const closed = fake.writer.close();
    await waitTurns(3);
    fake.client.unavailable(unavailable);
    fake.giveUp();
    await Promise.all([written, closed]);
    answer({ outcome: 'refused', error: unavailable });
    await waitTurns(3);
    assert.deepEqual([fake.failures, fake.people.size], [[], 0]);
  });
});

describe('a writer whose log receives other groups', () => {
  it('publishes them only between two batches', async () => {
    const fake = await fakeLog();
    let answer: (answer: Answer) => void = () => undefined;
    fake.answers.push(new Promise((resolve) => (answer = resolve)));
    const writing = fake.writer.write((tx) => tx.of(fake.people).insert(createPerson('ann')));
    await waitTurns(3);
    const followed = fake.client.between(async () => fake.follow([foreign(2, 'far')]));
    await waitTurns(5);
    assert.equal(fake.people.size, 0);
    answer(won);
    await Promise.all([writing, followed]);
    assert.deepEqual(listRecords(fake.people).map(({ name }) => name), ['ann', 'far']);
    assert.equal(fake.writer.status().sequence, 2);
  });

  it('decides a batch in its turn, with everything that waits by then', async () => {
    const fake = await fakeLog();
    let begin: () => void = () => undefined;
    const turn = new Promise<void>((resolve) => (begin = resolve));
    const followed = fake.client.between(() => turn.then(() => fake.follow([foreign(1, 'far')])));
    const insert = (name: string): Promise<Person> =>
      fake.writer.write((tx) => tx.of(fake.people).insert(createPerson(name)));
    const first = insert('ann');
    await waitTurns(3);
    const second = insert('bob');
    begin();
    await followed;
    assert.deepEqual([(await first).id, (await second).id], [2, 3]);
    assert.equal(fake.groups.length, 1);
  });

  it('keeps records of an unknown collection', () => {
    const tables = new Tables();
    assert.equal(findOrAddTable(tables, 'strangers'), findOrAddTable(tables, 'strangers'));
    assert.deepEqual([...tables.keys()], ['strangers']);
  });
});

describe('a writer', () => {
  it('refuses only those writes of a batch that the log refuses', async () => {
    const { writer, people, answers } = await fakeLog();
    answers.push({ outcome: 'refused', error: storageFull('no room') });
    const works = [
      writer.write((tx) => tx.of(people).insert(createPerson('ann'))),
      writer.write((tx) => tx.of(people).insert(createPerson('bob'))),
      writer.write((tx) => tx.of(people).insert(createPerson('ann'))),
      writer.write((tx) => tx.of(people).get(1)?.name),
    ];
    for (const work of works.slice(0, 2)) await assert.rejects(work, { code: 'storage_full' });
    assert.deepEqual((await Promise.all(works.slice(2))).map(String), ['[object Object]', 'ann']);
    assert.equal(people.get(1)?.name, 'ann');
    assert.equal(people.size, 1);
  });

  it('accepts a transaction of 200,000 changes', async () => {
    const { writer, notes } = await fakeLog();
    const told: number[] = [];
    writer.onPublished((changes) => told.push(changes.length));
    await writer.write((tx) => {
      for (let n = 0; n < 200_000; n += 1) tx.of(notes).insert({ person: 1, text: '' });
    });
    assert.deepEqual([notes.size, told], [200_000, [200_000]]);
  });

  it('accepts only removals while the memory is full', async () => {
    const { writer, people, notes, notices, memory } = await fakeLog(24_400);
    const insert = (name: string): Promise<Person> => writer.write((tx) => tx.of(people).insert(createPerson(name)));
    for (const name of ['ann', 'bob', 'cat']) await insert(name);
    assert.deepEqual([writer.state, writer.isMemoryFull], ['writable', false]);
    const text = 'x'.repeat(20_000);
    const full = { code: 'storage_full', message: /would take \d{5} bytes of memory, and may take 24400: / };
    const grow = (name: string): Promise<unknown> => writer.write((tx) => tx.of(people).replace(1, createPerson(name)));
    await assert.rejects(grow(text), full);
    assert.deepEqual([writer.state, writer.isMemoryFull, notices], ['writable', false, []], 'half of it is free');
    await grow('x'.repeat(4600));
    assert.equal(writer.state, 'writable', 'nothing has been refused for lack of room');
    const before = memory.bytes;
    assert.ok(before > 0.95 * 24_400 && before < 24_400, `${before}`);
    await assert.rejects(grow(text), full);
    const swap = writer.write((tx) => {
      tx.of(people).remove(1);
      tx.of(notes).insert({ person: 1, text });
    });
    await assert.rejects(swap, full);
    assert.equal(memory.bytes, before);
    assert.deepEqual([writer.state, writer.isMemoryFull], ['full', true]);
    await writer.write((tx) => tx.of(people).remove(1));
    const replaceAndRemove = writer.write((tx) => {
      tx.of(people).remove(2);
      tx.of(people).replace(3, { ...createPerson('cat'), name: text });
    });
    await replaceAndRemove;
    assert.deepEqual(listRecords(people).map(({ id }) => id), [3]);
    assert.equal(writer.state, 'full');
    await assert.rejects(insert('dan'), full);
    // A removal makes room in the batch in which it is decided.
    const [, dan] = await Promise.all([writer.write((tx) => tx.of(people).remove(3)), insert('dan')]);
    assert.equal(dan.id, 4);
    assert.equal(writer.state, 'writable');
    const told = [
      'the records fill the 24400 bytes of memory that they may take: only removals are accepted',
      'there is room in memory again: all writes are accepted',
    ];
    assert.deepEqual(notices, [...told, ...told]);
  });

  it('reports an unknown outcome for the batch in flight, and no effect for waiting writes', async () => {
    const { writer, people, answers, failures } = await fakeLog();
    let fail: (answer: Answer) => void = () => undefined;
    answers.push(new Promise((resolve) => (fail = resolve)));
    const insert = (name: string): Promise<unknown> => writer.write((tx) => tx.of(people).insert(createPerson(name)));
    const inFlight = assert.rejects(insert('ann'), { code: 'outcome_unknown' });
    await waitTurns(3);
    const waiting = assert.rejects(insert('bob'), { code: 'store_failed' });
    fail({ outcome: 'unknown', error: new Error('gone') });
    await Promise.all([inFlight, waiting]);
    await assert.rejects(insert('cat'), { code: 'store_failed' });
    assert.equal(failures.length, 1);
    assert.equal(writer.status().state, 'failed');
    await writer.close();
  });

  it('responds to its callers even if a listener has a bug', async () => {
    const { store, people, failures } = await startStore();
    const bug = new Error('a bug');
    store.onPublished(() => {
      throw bug;
    });
    const written = store.write((tx) => tx.of(people).insert(createPerson('ann')));
    await assert.rejects(written, { code: 'outcome_unknown', cause: bug });
    assert.deepEqual([failures, store.state], [[bug], 'failed']);
  });

  it('drops only the transaction that throws', async () => {
    const { writer, people, groups } = await fakeLog();
    const insert = (name: string): Promise<Person> => writer.write((tx) => tx.of(people).insert(createPerson(name)));
    const failing = (name: string): Promise<unknown> => writer.write((tx) => {
      tx.of(people).remove(1);
      for (let n = 0; n < 1000; n += 1) tx.of(people).insert(createPerson(`${name}${n}`));
      throw new TypeError(name);
    });
    const works = [insert('ann'), failing('x'), insert('bob'), failing('y'), insert('x1')];
    const outcomes = await Promise.allSettled(works);
    assert.deepEqual(outcomes.map(({ status }) => status[0]).join(''), 'frfrf');
    assert.deepEqual(listRecords(people).map(({ id, revision, name }) => `${id} ${revision} ${name}`), [
      '1 1 ann', '2 2 bob', '3 3 x1',
    ]);
    assert.equal(groups.length, 1);
  });

  it('runs a transaction again if it no longer fits into its batch', async () => {
    const { writer, notes, groups } = await fakeLog();
    const runs: number[] = [];
    const insert = (person: number, share: number): Promise<Note> =>
      writer.write((tx) => {
        runs.push(person);
        return tx.of(notes).insert({ person, text: 'x'.repeat(limits.groupBytesMax * share) });
      });
    const written = await Promise.all([insert(1, 0.2), insert(2, 0.9)]);
    assert.deepEqual(runs, [1, 2, 2]);
    assert.deepEqual(written.map(({ id, revision }) => [id, revision]), [[1, 1], [2, 2]]);
    assert.deepEqual(groups.map(({ commits }) => commits.length), [1, 1]);
    // Large ones are run once where they follow each other, or a small one.
    await Promise.all([insert(3, 0), insert(4, 0.6), insert(5, 0.6), insert(6, 0.6)]);
    assert.deepEqual(runs.slice(3), [3, 4, 5, 6]);
  });

  it('undoes only the changes of a refused transaction', async () => {
    const { writer, people, notes } = await fakeLog();
    for (const name of ['ann', 'bob', 'cat']) await writer.write((tx) => tx.of(people).insert(createPerson(name)));
    let puts = 0;
    const { putPending } = people;
    people.putPending = (id, record) => {
      puts += 1;
      putPending.call(people, id, record);
    };
    const bulk = writer.write((tx) => {
      for (let n = 0; n < 1000; n += 1) tx.of(people).insert(createPerson(`p${n}`));
    });
    const refused = Array.from({ length: 100 }, () => writer.write((tx) => {
      tx.of(people).replace(1, createPerson('Ann'));
      tx.of(people).remove(2);
      tx.of(notes).insert({ person: 1, text: 'x' });
      tx.of(people).insert(createPerson('cat'));
    }));
    const outcomes = await Promise.allSettled([bulk, ...refused]);
    assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 100);
    assert.equal(puts, 1000 + 100 * 2 * 2, 'each of its two changes was made and undone');
    assert.equal((await writer.write((tx) => tx.of(notes).insert({ person: 1, text: 'y' }))).id, 1);
    assert.equal((await writer.write((tx) => tx.of(people).insert(createPerson('bob2')))).id, 1004);
    assert.deepEqual(people.members('role', 'member').slice(0, 2).map(({ name }) => name), ['ann', 'bob']);
    assert.equal(people.find('email', createPerson('p999').email)?.id, 1003);
  });

  /** A writer with Ann and Bob. */
  async function fakeLogOfTwo() {
    const { writer, people } = await fakeLog();
    await writer.write((tx) => [tx.of(people).insert(createPerson('ann')), tx.of(people).insert(createPerson('bob'))]);
    const replace = (id: number, values: Omit<Person, 'id' | 'revision'>) =>
      writer.write((tx) => tx.of(people).replace(id, values));
    return { writer, people, replace };
  }

  it('refuses a replacement with another record\'s unique value', async () => {
    const { replace } = await fakeLogOfTwo();
    await assert.rejects(replace(2, createPerson('ann')), UniqueKeyError);
    await assert.rejects(replace(2, { ...createPerson('bob'), email: 'ANN@example.org' }), UniqueKeyError);
  });

  it('accepts a replacement with its own unique value', async () => {
    const { people, replace } = await fakeLogOfTwo();
    await replace(2, { ...createPerson('bob'), name: 'Bob' });
    assert.deepEqual(listRecords(people).map(({ name }) => name), ['ann', 'Bob']);
  });

  it('accepts a unique value that the same transaction has freed', async () => {
    const { writer, people } = await fakeLogOfTwo();
    await writer.write((tx) => [
      tx.of(people).replace(1, createPerson('cy')),
      tx.of(people).replace(2, createPerson('ann')),
    ]);
    assert.deepEqual(listRecords(people).map(({ email }) => email), ['cy@example.org', 'ann@example.org']);
  });

  it('shows a transaction its own and earlier changes, and others only published ones', async () => {
    const { writer, people, answers } = await fakeLog();
    await writer.write((tx) => tx.of(people).insert(createPerson('ann')));
    let answer: (answer: Answer) => void = () => undefined;
    answers.push(new Promise((resolve) => (answer = resolve)));
    const find = (name: string): number | undefined => people.find('email', createPerson(name).email)?.id;
    const moving = writer.write((tx) => {
      tx.of(people).replace(1, { ...createPerson('bob'), role: 'admin' });
      assert.equal(tx.of(people).find('email', createPerson('ann').email), undefined);
      tx.of(people).replace(1, { ...createPerson('cat'), role: 'guest' });
      assert.equal(tx.of(people).find('email', createPerson('bob').email), undefined);
      assert.deepEqual([...tx.of(people).referring('role', 'member')], []);
      assert.equal(tx.of(people).find('email', createPerson('cat').email)?.id, 1);
      assert.equal(tx.of(people).insert(createPerson('ann')).id, 2, 'the key is free');
      tx.of(people).remove(2);
    });
    await waitTurns(3);
    assert.deepEqual([find('ann'), find('bob'), find('cat')], [1, undefined, undefined]);
    assert.deepEqual([people.members('role', 'member').length, people.members('role', 'guest').length], [1, 0]);
    answer(won);
    await moving;
    assert.deepEqual([find('ann'), find('bob'), find('cat')], [undefined, undefined, 1]);
    assert.deepEqual([people.members('role', 'member').length, people.members('role', 'guest').length], [0, 1]);
    assert.equal((await writer.write((tx) => tx.of(people).insert(createPerson('ann')))).id, 3);
  });

  it('lets timers run between many writes in memory', async () => {
    const tables = new Tables();
    const table = tables.add(people);
    const log = memoryLog(seedRandom(1));
    const memory = new Memory(tables, Infinity, () => assert.fail());
    const writer = new Writer({ log, tables, memory, clock: systemClock, onFailure: () => assert.fail() });
    await writer.start();
    let isOver = false;
    setTimeout(() => (isOver = true), 1);
    let writes = 0;
    while (!isOver && writes < 100_000) {
      await writer.write((tx) => tx.of(table).insert(createPerson(`p${writes}`)));
      writes += 1;
    }
    assert.ok(isOver, `${writes} writes kept a timer waiting`);
  });

  it('lets other work run between many refusals', async () => {
    const { writer, people, clock, groups } = await fakeLog();
    let nowMs = 0;
    clock.elapsed = () => nowMs;
    const ran: string[] = [];
    const write = (name: string): Promise<unknown> =>
      writer.write((tx) => {
        nowMs += 4;
        ran.push(name);
        if (name === 'no') throw new Error(name);
        tx.of(people).insert(createPerson(name));
      });
    const turns = new Set<number>();
    const watch = (): void => {
      turns.add(ran.length);
      if (ran.length < 9) setImmediate(watch);
    };
    setImmediate(watch);
    const names = ['no', 'no', 'no', 'no', 'ann', 'no', 'bob', 'no', 'cy'];
    const outcomes = await Promise.allSettled(names.map(write));
    assert.deepEqual(outcomes.map(({ status }) => status === 'rejected'), names.map((name) => name === 'no'));
    assert.deepEqual(ran, names);
    assert.ok(turns.has(3) && turns.has(8), [...turns].join());
    assert.deepEqual(groups.map(({ commits }) => commits.length), [2, 1]);
  });

  it('responds to all callers of a batch even if a commit listener fails', async () => {
    const { writer, people, failures } = await fakeLog();
    const outcomes = await Promise.allSettled(['ann', 'bob', 'cat'].map((name) => writer.write((tx) => {
      tx.onCommit(() => {
        if (name === 'bob') throw new Error('the listener fails');
      });
      return tx.of(people).insert(createPerson(name));
    })));
    assert.deepEqual(outcomes.map(({ status }) => status), ['fulfilled', 'rejected', 'rejected']);
    assert.match(String(failures), /the listener fails/);
  });

  it('writes 1,000 records of a transaction as one commit', async () => {
    const { writer, people, groups } = await fakeLog();
    await writer.write((tx) => {
      for (let n = 0; n < 1000; n += 1) tx.of(people).insert(createPerson(`p${n}`));
    });
    assert.deepEqual([people.size, people.revision, groups.length, groups[0]?.commits.length], [1000, 1, 1, 1]);
  });

  it('lets users and networks take turns with one write each', async () => {
    const { writer } = await fakeLog();
    const order: string[] = [];
    const write = (caller: string): Promise<number> => writer.write(() => order.push(caller), caller);
    const many = Array.from({ length: 50 }, () => write('192.0.2.1'));
    // One site has 65,536 networks, and one turn.
    const site = Array.from({ length: 3 }, (_, subnet) => write(`2001:db8:0:${subnet}`));
    await Promise.all([...many, ...site, write('user 1'), write('user 1')]);
    const firsts = ['192.0.2.1', '2001:db8:0:0', 'user 1'];
    assert.deepEqual(order.slice(0, 6), [...firsts, '192.0.2.1', '2001:db8:0:1', 'user 1']);
    assert.equal(order.length, 55);
  });

  it('gives the next turn to another caller after one had many refusals', async () => {
    const { writer, clock } = await fakeLog();
    let now = 0;
    clock.elapsed = () => now;
    const order: string[] = [];
    const refuse = async (): Promise<void> => {
      const refused = writer.write(() => {
        order.push('refused');
        now += 12;
        throw new CairnError('still_referenced', 'Cannot remove it');
      }, 'user 1');
      await assert.rejects(refused, { code: 'still_referenced' });
    };
    await Promise.all(Array.from({ length: 500 }, refuse));
    order.length = 0;
    const refused = Array.from({ length: 20 }, refuse);
    const write = () => writer.write(() => order.push('written'), 'user 2');
    await Promise.all([...refused, ...Array.from({ length: 20 }, write)]);
    assert.deepEqual(order, Array.from({ length: 20 }, () => ['refused', 'written']).flat());
  });
});
