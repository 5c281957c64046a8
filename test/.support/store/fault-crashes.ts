import assert from 'node:assert/strict';
import { CairnError } from '../../../src/base/errors.ts';
import { makeStore, seeded, small, startStore, turns } from './fixtures.ts';
import { crashStates, randomWrite, stateOf } from './model.ts';
import { afterCrash, SimulatedDisk } from './simulated-disk.ts';

/** A write, and how many operations the disk had seen when it began and when it was answered. */
interface Write {
  readonly began: number;
  readonly answered: number;
  readonly sequence: number;
}

/**
 * Writes to a disk that is full now and then, and crashes after each of its operations: what was acknowledged is there,
 * and nothing that was refused. Returns how many writes were refused, and how many crashes were looked at.
 */
export async function crashWhileFull(seed: number, steps: number): Promise<{ refused: number; states: number }> {
  const next = seeded(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0);
  const opened = await startStore({ ...small, files: disk });
  const started = disk.operations.length;
  const known = new Map([[0, stateOf(opened)]]);
  const done: Write[] = [];
  const refused: Write[] = [];
  for (let step = 0; step < steps; step += 1) {
    const full = next() < 0.35;
    disk.fault = ({ operation }) =>
      full && operation === 'write' && next() < 0.5 ? { code: 'ENOSPC', written: Math.floor(next() * 400) } : undefined;
    const began = disk.operations.length;
    const sequence = opened.store.status().sequence + 1;
    if (next() < 0.25) await opened.store.checkpoint();
    else {
      const outcomes = await randomWrite(opened, next).then(
        () => done,
        (error: unknown) => {
          assert.ok(error instanceof CairnError && error.code === 'storage_full', String(error));
          return refused;
        },
      );
      outcomes.push({ began, answered: disk.operations.length, sequence });
      known.set(opened.store.status().sequence, stateOf(opened));
    }
    await turns(10);
    opened.clock.advance(1500);
    await opened.tick();
  }
  let states = 0;
  for (let length = started; length <= disk.operations.length; length += 1) {
    const found = [...crashStates(disk.operations, length, next)];
    const state = found[Math.floor(next() * found.length)];
    const content = afterCrash(disk.operations.slice(0, length), state?.dropped ?? new Set(), state?.tear);
    content.delete('lock');
    const where = `seed ${seed}, crash after ${length} operations, dropped [${[...(state?.dropped ?? [])].join()}]`;
    const again = makeStore({ ...small, files: new SimulatedDisk(content) });
    await again.store.start().catch((error: unknown) => assert.fail(`${where}: ${String(error)}`));
    const { sequence } = again.store.status();
    for (const write of done) assert.ok(write.answered > length || write.sequence <= sequence, `${where}: a loss`);
    // What was under way may be there, whatever became of it.
    const unanswered = refused.some(
      (write) => write.began < length && length < write.answered && write.sequence === sequence,
    );
    if (!unanswered) assert.equal(stateOf(again), known.get(sequence), where);
    states += 1;
  }
  return { refused: refused.length, states };
}
