import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/base/system.ts';
import type { RequestEntry } from '../../src/http/message.ts';
import type { LogSink } from '../../src/log/line-queue.ts';
import { createLineLog, type Log, type LogOptions } from '../../src/log/log.ts';
import { readable } from '../../src/options/readable-log/format.ts';
import { fakeTimers } from '../support/basics.ts';

const clock: Clock = { now: () => Date.UTC(2030, 0, 2, 3, 4, 5, 6), elapsed: () => 0 };
const entry: RequestEntry = {
  id: 'r-1', method: 'GET', target: '/items/7?secret', route: '/items/{id}', status: 200,
  durationMs: 0.12345, bytes: 52, userId: 3, address: '192.0.2.7',
};

/** A sink that takes what it is given, or only when `take` is called. */
function createSink(slow = false): { stream: Writable; batches: string[]; take: () => void } {
  const batches: string[] = [];
  let pending: (() => void) | undefined;
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      batches.push(String(chunk));
      if (slow) pending = done;
      else done();
    },
  });
  const take = (): void => {
    const done = pending;
    pending = undefined;
    done?.();
  };
  return { stream, batches, take };
}

/** The time for which the log collects requests before it writes them. */
const gatheringMs = 20;

/** Stops the time of a test, and returns a function that lets some milliseconds pass, and what is due then happen. */
function stopTime(t: TestContext): (ms: number) => Promise<void> {
  const time = fakeTimers(t);
  return async (ms) => {
    time.tick(ms);
    await turn();
  };
}

const linesIn = (text: string): string[] => text.trimEnd().split('\n');

function logTo(stream: Writable, options: Partial<LogOptions> = {}): Log {
  return createLineLog({ level: 'info', clock, sink: stream, ...options });
}

test('a request is one line of JSON', async () => {
  const { stream, batches } = createSink();
  const log = logTo(stream);
  log.request(entry);
  log.request({ ...entry, route: undefined, userId: undefined, status: 404 });
  await log.close(1000);
  const lines = batches.join('').split('\n');
  assert.equal(lines.pop(), '');
  assert.deepEqual(lines.map((line): unknown => JSON.parse(line)), [
    {
      time: '2030-01-02T03:04:05.006Z', level: 'info', kind: 'request', id: 'r-1', method: 'GET', route: '/items/{id}',
      status: 200, durationMs: 0.123, bytes: 52, userId: 3, address: '192.0.2.7',
    },
    {
      time: '2030-01-02T03:04:05.006Z', level: 'info', kind: 'request', id: 'r-1', method: 'GET', route: null,
      status: 404, durationMs: 0.123, bytes: 52, userId: null, address: '192.0.2.7',
    },
  ]);
});

test('the requests of 20 ms are written at once, and other lines without delay', async (t) => {
  const pass = stopTime(t);
  const { stream, batches } = createSink();
  const log = logTo(stream);
  for (let i = 0; i < 10; i += 1) {
    log.request(entry);
    await pass(1);
  }
  assert.equal(batches.length, 0);
  await pass(gatheringMs - 10);
  assert.deepEqual(batches.map((batch) => linesIn(batch).length), [10]);
  await pass(100);
  assert.equal(batches.length, 1, 'without lines there is nothing to write');
  log.message('notice', 'Cairn serves');
  await pass(1);
  assert.equal(batches.length, 2);
  log.request(entry);
  log.security('login', {});
  await pass(1);
  assert.equal(batches.length, 3, 'though a request was gathered before');
});

for (const [name, format] of [['json', undefined], ['readable', readable]] as const) {
  test(`a value with line ends and control characters stays one ${name} line`, async () => {
    const { stream, batches } = createSink();
    const log = logTo(stream, { format });
    const hostile = 'x\r\n{"kind":"security"}\u001b[2J\u2028\u202e"\\';
    log.request({ ...entry, method: hostile });
    log.security('login_failed', { email: hostile, address: '::1' });
    log.message('warn', hostile, { detail: hostile });
    await log.close(1000);
    const text = batches.join('');
    assert.equal(text.split('\n').length, 4);
    assert.doesNotMatch(text, /[\r\u001b]/);
    if (format === readable) assert.match(text, /^[\x20-\x7e\n]+$/, text);
    else for (const line of linesIn(text)) assert.equal(typeof JSON.parse(line), 'object');
  });
}

test('the pretty log shows a path that was not found, without its query', async () => {
  const { stream, batches } = createSink();
  const log = logTo(stream, { format: readable });
  log.request(entry);
  log.request({ ...entry, status: 404 });
  log.request({ ...entry, target: `/nowhere${'x'.repeat(16_000)}`, route: undefined, status: 404 });
  log.request({ ...entry, target: '', method: '', route: undefined, status: 400 });
  await log.close(1000);
  const places = linesIn(batches.join('')).map((line) => line.split(' ').slice(1, 4).join(' '));
  const cut = `/nowhere${'x'.repeat(192)}`;
  assert.deepEqual(places, ['200 GET /items/{id}', '404 GET /items/7', `404 GET ${cut}`, '400 "" (no']);
});

test('the level hides requests and messages below it, but never a security event or a notice', async () => {
  const { stream, batches } = createSink();
  const log = logTo(stream, { level: 'error', format: readable });
  log.request(entry);
  log.request({ ...entry, status: 503 });
  log.message('info', 'hidden');
  log.message('warn', 'hidden');
  log.message('error', 'shown');
  log.message('notice', 'told');
  log.security('login', { userId: 1 });
  await log.close(1000);
  assert.deepEqual(batches.join('').split('\n'), [
    '03:04:05.006 ERROR 503 GET /items/{id} ms=0.123 bytes=52 userId=3 address=192.0.2.7 id=r-1',
    '03:04:05.006 ERROR shown', '03:04:05.006 told',
    '03:04:05.006 security login userId=1', '',
  ]);
});

test('with a slow reader memory stays bounded, dropped lines are reported, security events are kept', async (t) => {
  const pass = stopTime(t);
  const { stream, batches, take } = createSink(true);
  const log = logTo(stream);
  log.request(entry);
  await pass(gatheringMs);
  for (let i = 0; i < 20_000; i += 1) log.request(entry);
  const dropped = log.dropped;
  assert.ok(dropped > 0);
  for (let i = 0; i < 100; i += 1) log.security('login_failed', { attempt: i });
  assert.equal(log.dropped, dropped);
  for (let turns = 0; turns < 60; turns += 1) {
    take();
    await pass(gatheringMs);
  }
  const lines = linesIn(batches.join(''));
  assert.ok(batches.join('').length < 2 * 1024 * 1024);
  assert.equal(lines.filter((line) => line.includes('"security"')).length, 100);
  assert.equal(lines.filter((line) => line.includes(`"lines":${dropped}`)).length, 1);
  assert.equal(lines.filter((line) => line.includes('"request"')).length + dropped, 20_001);
});

test('security events wait for a blocked sink, up to a bound', () => {
  const { stream } = createSink(true);
  const log = logTo(stream);
  const detail = 'x'.repeat(100_000);
  for (let mebibytes = 0; mebibytes < 15; mebibytes += 1) {
    for (let i = 0; i < 10; i += 1) log.security('login_failed', { detail });
  }
  assert.equal(log.dropped, 0);
  for (let i = 0; i < 100; i += 1) log.security('login_failed', { detail });
  assert.ok(log.dropped > 0);
});

test('a failing sink is reported once, and the lines that it missed when it works again', async (t) => {
  const pass = stopTime(t);
  let taken = '';
  let isFull = true;
  const failures: string[] = [];
  const log = createLineLog({
    level: 'info', clock, onError: ({ message }) => failures.push(message),
    sink: {
      write(bytes, done) {
        if (isFull) return done(new Error('ENOSPC'));
        taken += Buffer.from(bytes).toString();
        return done();
      },
    },
  });
  for (let attempt = 0; attempt < 5; attempt += 1) {
    log.request(entry);
    log.security('login_failed', { attempt });
    await pass(gatheringMs);
  }
  assert.deepEqual([taken, failures, log.dropped], ['', ['ENOSPC'], 10]);
  isFull = false;
  log.request(entry);
  await pass(gatheringMs);
  await pass(gatheringMs);
  const lines = linesIn(taken).map((line) => Object(JSON.parse(line)));
  assert.deepEqual(lines.map(({ kind, lines }) => [kind, lines]), [['request', undefined], ['message', 10]]);
  isFull = true;
  log.security('login', {});
  await pass(gatheringMs);
  assert.deepEqual([failures, log.dropped], [['ENOSPC', 'ENOSPC'], 11]);
});

test('a sink that accepts a few bytes at a time gets them all', async () => {
  let taken = '';
  const log = createLineLog({
    level: 'info', clock,
    sink: {
      write(bytes, done) {
        taken += Buffer.from(bytes.subarray(0, 7)).toString('latin1');
        done(null, Math.min(7, bytes.length));
      },
    },
  });
  for (let n = 0; n < 10; n += 1) log.request(entry);
  await log.close(1000);
  assert.deepEqual(linesIn(taken).map((line) => Object(JSON.parse(line)).id), Array(10).fill('r-1'));
  assert.equal(log.dropped, 0);
});

for (const [what, wholeLines] of [['in the middle of a line', 2.5], ['between two lines', 2]] as const) {
  test(`a sink that gets full ${what} drops and counts the rest of them, but no later line`, async (t) => {
    const pass = stopTime(t);
    let taken = '';
    let room = Infinity;
    const log = createLineLog({
      level: 'info', clock,
      sink: {
        write(bytes, done) {
          if (room === 0) return done(new Error('ENOSPC'));
          const part = bytes.subarray(0, room);
          taken += Buffer.from(part).toString();
          room -= part.length;
          return done(null, part.length);
        },
      },
    });
    log.request(entry);
    await pass(gatheringMs);
    room = taken.length * wholeLines;
    for (let n = 0; n < 5; n += 1) log.request(entry);
    await pass(gatheringMs);
    assert.equal(log.dropped, 3);
    log.request(entry);
    await pass(gatheringMs);
    assert.equal(log.dropped, 4);
    room = Infinity;
    log.request(entry);
    await pass(gatheringMs);
    await pass(gatheringMs);
    const good = linesIn(taken).filter((line) => line.endsWith('}')).map((line) => Object(JSON.parse(line)));
    assert.deepEqual(good.map(({ kind, lines }) => lines ?? kind), ['request', 'request', 'request', 'request', 4]);
  });
}

test('a sink fails if it throws, accepts nothing or calls back twice', async (t) => {
  const pass = stopTime(t);
  const failures: string[] = [];
  const misdeeds: LogSink['write'][] = [
    () => {
      throw new Error('closed');
    },
    (_bytes, done) => done(null, 0),
    (_bytes, done) => {
      done(new Error('EIO'));
      done(null);
    },
  ];
  let taken = '';
  const write: LogSink['write'] = (bytes, done) => {
    const misdeed = misdeeds.shift();
    if (misdeed !== undefined) return void misdeed(bytes, done);
    taken += Buffer.from(bytes).toString();
    return done();
  };
  const log = createLineLog({
    level: 'info', clock, sink: { write }, onError: ({ message }) => failures.push(message),
  });
  for (let n = 0; n < 4; n += 1) {
    log.request(entry);
    await pass(gatheringMs);
  }
  await pass(gatheringMs);
  assert.deepEqual([misdeeds.length, failures, log.dropped], [0, ['closed'], 3], 'it is told once');
  assert.equal(linesIn(taken).length, 2, 'a request, and how many were dropped');
});

test('a batch that is long enough is written without waiting for more', async (t) => {
  const pass = stopTime(t);
  const { stream, batches } = createSink();
  const log = logTo(stream);
  while (batches.length === 0) log.request(entry);
  const [batch = ''] = batches;
  assert.ok(batch.length > 64_000 && batch.length <= 65_536, String(batch.length));
  log.request(entry);
  await turn();
  assert.equal(batches.length, 1, 'and the next line is gathered again');
  await pass(gatheringMs);
  assert.equal(batches.length, 2);
});

test('a stream that was closed causes no error', async () => {
  const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) });
  const log = logTo(stream);
  log.request(entry);
  const closed = log.close(10);
  await turn();
  log.security('login', {});
  await closed;
  logTo(stream);
  assert.equal(stream.listenerCount('error'), 1, 'however many logs write to it');
});

test('closing waits for a slow reader, but not forever', async () => {
  const { stream } = createSink(true);
  const log = logTo(stream);
  log.request(entry);
  await log.close(10);
});

test('closing waits for the lines that came while others were dropped', async (t) => {
  const pass = stopTime(t);
  const { stream, batches, take } = createSink(true);
  const log = logTo(stream);
  log.security('login', {});
  await pass(gatheringMs);
  while (log.dropped === 0) log.request(entry);
  let isClosed = false;
  const closed = log.close(1000).then(() => (isClosed = true));
  while (!batches.at(-1)?.includes('"lines"')) {
    const written = batches.length;
    take();
    await pass(gatheringMs);
    assert.deepEqual([batches.length, isClosed], [written + 1, false], 'a batch is still being written');
  }
  take();
  await closed;
  assert.match(batches.join(''), /"lines":1\}\n$/);
});

test('two closes at a time both end with the last line', async () => {
  const { stream, take } = createSink(true);
  const log = logTo(stream);
  log.request(entry);
  const closed = [log.close(60_000), log.close(60_000)];
  await turn();
  take();
  await Promise.all(closed);
});
