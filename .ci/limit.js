/** Gives each test a time limit, so that one that hangs is named: `node --import ./.ci/limit.js --test`. */
import { afterEach, beforeEach } from 'node:test';

const limitMs = Number(process.env.CAIRN_TEST_LIMIT_MS ?? 180_000);

// Tests replace these.
const { setTimeout, clearTimeout } = globalThis;

/** The timers of running tests, by name. */
const timers = new Map();

beforeEach(({ name }) => {
  const stop = () => {
    process.stderr.write(`The test "${name}" has not ended after ${limitMs} ms\n`, () =>
      process.exit(1),
    );
  };
  timers.set(name, [...(timers.get(name) ?? []), setTimeout(stop, limitMs).unref()]);
});

afterEach(({ name }) => clearTimeout(timers.get(name)?.pop()));
