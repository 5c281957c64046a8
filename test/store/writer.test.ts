import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { limits } from '../../src/base/limits.ts';
import type { Answer, ForeignGroup, Group, Log, LogEvents } from '../../src/store/log.ts';
import { memoryLog, storageFull, won } from '../../src/store/log.ts';
import { Table, tableOf } from '../../src/store/memory/table.ts';
import { UniqueKeyError, type PublishedChange } from '../../src/store/store.ts';
import { Writer } from '../../src/store/writer.ts';
import { all, notes, people, person, seededRandom, turns, type Note, type Person } from '../.support/store/fixtures.ts';

interface Fake {
  readonly writer: Writer;
  readonly people: Table<Person>;
  readonly notes: Table<Note>;
  readonly groups: Group[];
  readonly failures: unknown[];
  /** How often the log was asked to confirm. */
  confirmed: number;
  /** What the log answers next; without one, it has won. */
  readonly answers: (Answer | Promise<Answer>)[];
  isFull: boolean;
  readonly heap: { isFull: boolean };
  /** What the log has received by itself. */
  readonly arrived: ForeignGroup[];
  isDue: boolean;
  /** Lets `ready` answer. */
  turn: Promise<void>;
  readonly events: LogEvents;
}

/** A writer on a log that answers as it is told. */
async function fakeLog(recordsMax = Infinity): Promise<Fake> {
  const tables = { people: new Table(people), notes: new Table(notes) };
  const failures: unknown[] = [];
  let told: LogEvents | undefined;
  const fake: Omit<Fake, 'writer' | 'events'> = {
    ...tables,
    groups: [],
    failures,
    confirmed: 0,
    answers: [],
    isFull: false,
    heap: { isFull: false },
    arrived: [],
    isDue: false,
    turn: Promise.resolve(),
  };
  const memory = memoryLog(seededRandom(1));
  const log: Log = {
    ...memory,
    open(events) {
      told = events;
      return memory.open(events);
    },
    async ready() {
      await fake.turn;
      return fake.arrived.splice(0);
    },
    get isDue() {
      return fake.isDue;
    },
    append: async (group) => {
      const answer = await (fake.answers.shift() ?? won);
      if (answer.outcome === 'won') fake.groups.push(group);
      return answer;
    },
    confirm: async () => {
      fake.confirmed += 1;
      fake.isDue = false;
      return fake.answers.shift() ?? won;
    },
    get isFull() {
      return fake.isFull;
    },
  };
  const byName = new Map(Object.entries(tables));
  const onFailure = (error: unknown): void => void failures.push(error);
  const writer = new Writer({ log, tables: byName, heap: fake.heap, recordsMax, onFailure });
  await writer.start();
  assert.ok(told);
  return Object.assign(fake, { writer, events: told });
}

const foreign = (first: number, ...names: string[]): ForeignGroup => ({
  first,
  commits: names.map((name, at) => [['people', { id: first + at, revision: first + at, ...person(name) }]]),
});

const lost = (...groups: ForeignGroup[]): Answer => ({ outcome: 'lost', groups });

describe('a writer whose log is shared with other processes', () => {
  it('applies what came before, and runs the batch again on top of it', async () => {
    const { writer, people, answers, groups } = await fakeLog();
    answers.push(lost(foreign(1, 'far', 'away')), lost(foreign(3, 'again')));
    const seen: number[] = [];
    const insert = (name: string): Promise<Person> =>
      writer.write((tx) => {
        seen.push(tx.members(people, 'role', 'member').length);
        return tx.insert(people, person(name));
      });
    const written = await Promise.all([insert('ann'), insert('bob')]);
    assert.deepEqual(seen, [0, 1, 2, 3, 3, 4]);
    assert.deepEqual(written.map(({ id, revision }) => [id, revision]), [[4, 4], [5, 5]]);
    assert.deepEqual(all(people).map(({ name }) => name), ['far', 'away', 'again', 'ann', 'bob']);
    assert.deepEqual(groups.map(({ first, commits }) => [first, commits.length]), [[4, 2]]);
    const { sequence, commits } = writer.status();
    assert.deepEqual([sequence, commits], [5, 5]);
  });

  it('decides refusals anew, too', async () => {
    const { writer, people, answers } = await fakeLog();
    answers.push(lost(foreign(1, 'far')));
    const first = writer.write((tx) => {
      if (tx.get(people, 1) !== undefined) throw new TypeError('too late');
      return tx.insert(people, person('ann'));
    });
    // Refused where the first one succeeds.
    const second = writer.write((tx) => tx.insert(people, person('ann')));
    await assert.rejects(first, TypeError);
    assert.equal((await second).id, 2);
  });

  it('tells listeners each group once, in the order of the commits, before the callers', async () => {
    const { writer, people, notes, answers } = await fakeLog();
    const told: string[] = [];
    writer.onPublished((changes: readonly PublishedChange[]) =>
      void told.push(changes.map(({ collection, id, record, sequence }) =>
        `${sequence} ${collection.name} ${record === undefined ? 'without' : ''} ${id}`).join(', ')));
    answers.push(lost(foreign(1, 'far', 'away')));
    const writing = writer.write((tx) => {
      tx.remove(people, 1);
      tx.insert(notes, { person: 2, text: 'x' });
    }).then(() => told.push('answered'));
    const refused = assert.rejects(writer.write((tx) => tx.replace(people, 9, person('x'))));
    await Promise.all([writing, refused, writer.write((tx) => tx.remove(people, 2))]);
    assert.deepEqual(told, [
      '1 people  1, 2 people  2',
      '3 people without 1, 3 notes  1, 4 people without 2',
      'answered',
    ]);
  });

  it('answers results and refusals only once the batch is confirmed', async () => {
    const { writer, people, answers } = await fakeLog();
    let confirm: (answer: Answer) => void = () => undefined;
    answers.push(new Promise((resolve) => (confirm = resolve)));
    const settled: string[] = [];
    const works = [
      writer.write((tx) => tx.insert(people, person('ann'))),
      writer.write((tx) => tx.insert(people, person('ann'))),
      writer.write((tx) => tx.find(people, 'email', person('ann').email)),
    ];
    const outcomes = works.map((work) => work.then(
      (record) => void settled.push(`${record?.id}`),
      (error: unknown) => void settled.push(error instanceof UniqueKeyError ? 'taken' : String(error)),
    ));
    await turns(5);
    assert.deepEqual([settled, people.size], [[], 0]);
    confirm(won);
    await Promise.all(outcomes);
    assert.deepEqual(settled, ['1', 'taken', '1']);
  });

  it('confirms a batch that changes nothing, and runs it again where that shows other groups', async () => {
    const fake = await fakeLog();
    const { writer, people, answers, groups } = fake;
    answers.push(lost(foreign(1, 'far')));
    assert.equal((await writer.write((tx) => tx.get(people, 1)))?.name, 'far');
    assert.deepEqual([fake.confirmed, groups.length], [2, 0]);
  });

  it('fails where a group cannot be applied', async () => {
    const { writer, people, answers, failures } = await fakeLog();
    answers.push(lost({ first: 1, commits: [[['strangers', 1]]] }));
    await assert.rejects(writer.write((tx) => tx.insert(people, person('ann'))), { code: 'outcome_unknown' });
    assert.match(String(failures), /Cannot apply commit 1 of the log/);
  });
});

describe('a writer whose log does not answer', () => {
  /** An answer that a test gives later. */
  function later(fake: Fake): (answer: Answer) => void {
    let give: (answer: Answer) => void = () => undefined;
    fake.answers.push(new Promise((resolve) => (give = resolve)));
    return (answer) => give(answer);
  }

  const insert = ({ writer, people }: Fake, name: string): Promise<Person> =>
    writer.write((tx) => tx.insert(people, person(name)));

  async function stall(fake: Fake): Promise<void> {
    const inFlight = assert.rejects(insert(fake, 'ann'), { code: 'outcome_unknown' });
    const reading = assert.rejects(fake.writer.write(() => undefined), { code: 'store_unavailable' });
    await turns(3);
    const waiting = assert.rejects(insert(fake, 'bob'), { code: 'store_unavailable', retryAfterSeconds: 2 });
    fake.events.onStalled();
    await Promise.all([inFlight, reading, waiting]);
    await assert.rejects(insert(fake, 'cat'), { code: 'store_unavailable' });
  }

  it('tells all callers, publishes the batch when it has won, and takes writes again', async () => {
    const fake = await fakeLog();
    const answer = later(fake);
    await stall(fake);
    answer(won);
    await turns(2);
    assert.deepEqual(all(fake.people).map(({ name }) => name), ['ann']);
    assert.equal((await insert(fake, 'dan')).id, 2);
    assert.deepEqual(fake.failures, []);
  });

  it('drops a batch that has lost in the end', async () => {
    const fake = await fakeLog();
    const answer = later(fake);
    await stall(fake);
    answer(lost(foreign(1, 'far')));
    await turns(2);
    assert.equal((await insert(fake, 'dan')).id, 2);
    assert.deepEqual(all(fake.people).map(({ name }) => name), ['far', 'dan']);
  });

  it('gives the batch up when it is closed', async () => {
    const fake = await fakeLog();
    const answer = later(fake);
    const written = assert.rejects(insert(fake, 'ann'), { code: 'outcome_unknown' });
    await turns(3);
    const closed = fake.writer.close();
    await turns(3);
    fake.events.onStalled();
    await written;
    await turns(3);
    answer({ outcome: 'unknown', error: new Error('closed') });
    await closed;
    assert.deepEqual(fake.failures, []);
  });
});

describe('a writer whose log receives groups by itself', () => {
  it('publishes them between two batches, though nothing waits, and confirms only what is still due', async () => {
    const fake = await fakeLog();
    fake.isDue = true;
    fake.arrived.push(foreign(1, 'far'));
    fake.events.onDue();
    await turns(5);
    assert.deepEqual([all(fake.people).length, fake.confirmed], [1, 1]);
    fake.arrived.push(foreign(2, 'away'));
    fake.events.onDue();
    await turns(5);
    assert.deepEqual([all(fake.people).length, fake.confirmed], [1, 1], 'the log was not due');
    assert.equal((await fake.writer.write((tx) => tx.get(fake.people, 2)))?.name, 'away');
  });

  it('decides a batch when its turn has come, with all that waits by then', async () => {
    const fake = await fakeLog();
    let begin: () => void = () => undefined;
    fake.turn = new Promise((resolve) => (begin = resolve));
    const insert = (name: string): Promise<Person> => fake.writer.write((tx) => tx.insert(fake.people, person(name)));
    const first = insert('ann');
    await turns(3);
    const second = insert('bob');
    fake.arrived.push(foreign(1, 'far'));
    begin();
    assert.deepEqual([(await first).id, (await second).id], [2, 3]);
    assert.equal(fake.groups.length, 1);
  });

  it('keeps records of a collection that it does not know', () => {
    const tables = new Map();
    assert.equal(tableOf(tables, 'strangers'), tableOf(tables, 'strangers'));
    assert.deepEqual([...tables.keys()], ['strangers']);
  });
});

describe('a writer', () => {
  it('refuses the changes of a batch that the log refuses, and decides the others anew', async () => {
    const { writer, people, answers } = await fakeLog();
    answers.push({ outcome: 'refused', error: storageFull() });
    const works = [
      writer.write((tx) => tx.insert(people, person('ann'))),
      writer.write((tx) => tx.insert(people, person('bob'))),
      writer.write((tx) => tx.insert(people, person('ann'))),
      writer.write((tx) => tx.get(people, 1)?.name),
    ];
    for (const work of works.slice(0, 2)) await assert.rejects(work, { code: 'storage_full' });
    assert.deepEqual((await Promise.all(works.slice(2))).map(String), ['[object Object]', 'ann']);
    assert.equal(people.get(1)?.name, 'ann');
    assert.equal(people.size, 1);
  });

  it('refuses what grows while the memory is full, says so, and goes on with removals', async () => {
    const { writer, people, notes, heap } = await fakeLog();
    const insert = (name: string): Promise<Person> => writer.write((tx) => tx.insert(people, person(name)));
    for (const name of ['ann', 'bob', 'cat']) await insert(name);
    heap.isFull = true;
    const full = { code: 'storage_full', message: /fill the memory of the server: remove records, or give Node/ };
    await assert.rejects(insert('dan'), full);
    await assert.rejects(writer.write((tx) => tx.replace(people, 1, person('Ann'))), full);
    const swap = writer.write((tx) => {
      tx.remove(people, 1);
      tx.insert(notes, { person: 1, text: 'gone' });
    });
    await assert.rejects(swap, full);
    await writer.write((tx) => tx.remove(people, 1));
    const replaceAndRemove = writer.write((tx) => {
      tx.remove(people, 2);
      tx.replace(people, 3, person('Cat'));
    });
    await replaceAndRemove;
    assert.deepEqual(all(people).map(({ name }) => name), ['Cat']);
    heap.isFull = false;
    assert.equal((await insert('dan')).id, 4);
  });

  it('keeps at most as many records as it is told, also within one batch', async () => {
    const { writer, people, notes, groups } = await fakeLog(3);
    const insert = (name: string): Promise<Person> => writer.write((tx) => tx.insert(people, person(name)));
    const message = 'Cannot write: the server keeps at most 3 records: remove some first';
    const full = { code: 'storage_full', message };
    const outcomes = await Promise.allSettled(['ann', 'bob', 'cat', 'dan', 'eve'].map(insert));
    assert.equal(outcomes.map(({ status }) => status[0]).join(''), 'fffrr');
    assert.equal(groups.length, 1);
    await assert.rejects(writer.write((tx) => tx.insert(notes, { person: 1, text: 'x' })), full);
    await writer.write((tx) => tx.replace(people, 1, person('Ann')));
    const swap = (removed: number): Promise<Note> => writer.write((tx) => {
      tx.remove(people, removed);
      return tx.insert(notes, { person: removed, text: 'gone' });
    });
    await Promise.all([swap(1), assert.rejects(insert('dan'), full), swap(2)]);
    await Promise.all([writer.write((tx) => tx.remove(people, 3)), insert('dan')]);
    assert.deepEqual([people.size, notes.size], [1, 2]);
  });

  it('tells the batch in flight that its outcome is unknown, and what waits that nothing was written', async () => {
    const { writer, people, answers, failures } = await fakeLog();
    let fail: (answer: Answer) => void = () => undefined;
    answers.push(new Promise((resolve) => (fail = resolve)));
    const insert = (name: string): Promise<unknown> => writer.write((tx) => tx.insert(people, person(name)));
    const inFlight = assert.rejects(insert('ann'), { code: 'outcome_unknown' });
    await turns(3);
    const waiting = assert.rejects(insert('bob'), { code: 'store_failed' });
    fail({ outcome: 'unknown', error: new Error('gone') });
    await Promise.all([inFlight, waiting]);
    await assert.rejects(insert('cat'), { code: 'store_failed' });
    assert.equal(failures.length, 1);
    assert.equal(writer.status().state, 'failed');
    await writer.close();
  });

  it('leaves nothing of a transaction that throws, and all of those around it', async () => {
    const { writer, people, groups } = await fakeLog();
    const insert = (name: string): Promise<Person> => writer.write((tx) => tx.insert(people, person(name)));
    const failing = (name: string): Promise<unknown> => writer.write((tx) => {
      tx.remove(people, 1);
      for (let n = 0; n < 1000; n += 1) tx.insert(people, person(`${name}${n}`));
      throw new TypeError(name);
    });
    const works = [insert('ann'), failing('x'), insert('bob'), failing('y'), insert('x1')];
    const outcomes = await Promise.allSettled(works);
    assert.deepEqual(outcomes.map(({ status }) => status[0]).join(''), 'frfrf');
    assert.deepEqual(all(people).map(({ id, revision, name }) => `${id} ${revision} ${name}`), [
      '1 1 ann', '2 2 bob', '3 3 x1',
    ]);
    assert.equal(groups.length, 1);
  });

  it('runs a transaction again that does not fit into its batch any more', async () => {
    const { writer, notes, groups } = await fakeLog();
    const runs: number[] = [];
    const text = 'x'.repeat(limits.groupBytesMax * 0.4);
    const insert = (person: number): Promise<Note> =>
      writer.write((tx) => {
        runs.push(person);
        return tx.insert(notes, { person, text });
      });
    const written = await Promise.all([insert(1), insert(2), insert(3)]);
    assert.deepEqual(runs, [1, 2, 3, 3]);
    assert.deepEqual(written.map(({ id, revision }) => [id, revision]), [[1, 1], [2, 2], [3, 3]]);
    assert.deepEqual(groups.map(({ commits }) => commits.length), [2, 1]);
  });

  it('takes 1,000 records in one transaction as one commit', async () => {
    const { writer, people, groups } = await fakeLog();
    await writer.write((tx) => {
      for (let n = 0; n < 1000; n += 1) tx.insert(people, person(`p${n}`));
    });
    assert.deepEqual([people.size, people.revision, groups.length, groups[0]?.commits.length], [1000, 1, 1, 1]);
  });
});
