import assert from 'node:assert/strict';
import { CairnError } from '../../../src/base/errors.ts';
import { seeded, small, turns } from './fixtures.ts';
import { crashStates, type MakeSubject } from './model.ts';
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
export async function crashWhileFull(
  seed: number,
  steps: number,
  make: MakeSubject,
): Promise<{ refused: number; states: number }> {
  const next = seeded(seed);
  const disk = new SimulatedDisk(new Map(), seed % 2 === 0);
  const subject = make({ ...small, files: disk });
  const { store } = subject;
  await store.start();
  const started = disk.operations.length;
  const known = new Map([[0, subject.state()]]);
  const done: Write[] = [];
  const refused: Write[] = [];
  for (let step = 0; step < steps; step += 1) {
    const full = next() < 0.35;
    disk.fault = ({ operation }) =>
      full && operation === 'write' && next() < 0.5 ? { code: 'ENOSPC', written: Math.floor(next() * 400) } : undefined;
    const began = disk.operations.length;
    const following = store.status().sequence + 1;
    if (next() < 0.25) await store.checkpoint();
    else {
      const [outcomes, sequence] = await subject.write(next).then(
        (last) => [done, last] as const,
        (error: unknown) => {
          assert.ok(error instanceof CairnError && error.code === 'storage_full', String(error));
          return [refused, following] as const;
        },
      );
      outcomes.push({ began, answered: disk.operations.length, sequence });
      known.set(store.status().sequence, subject.state());
    }
    await turns(10);
    await subject.pass(1500);
  }
  let states = 0;
  for (let length = started; length <= disk.operations.length; length += 1) {
    const found = [...crashStates(disk.operations, length, next)];
    const state = found[Math.floor(next() * found.length)];
    const content = afterCrash(disk.operations.slice(0, length), state?.dropped ?? new Set(), state?.tear);
    content.delete('lock');
    const where = `seed ${seed}, crash after ${length} operations, dropped [${[...(state?.dropped ?? [])].join()}]`;
    const again = make({ ...small, files: new SimulatedDisk(content) });
    await again.store.start().catch((error: unknown) => assert.fail(`${where}: ${String(error)}`));
    const { sequence } = again.store.status();
    for (const write of done) assert.ok(write.answered > length || write.sequence <= sequence, `${where}: a loss`);
    // What was under way may be there, whatever became of it.
    const unanswered = refused.some(
      (write) => write.began < length && length < write.answered && write.sequence === sequence,
    );
    if (!unanswered) assert.equal(again.state(), known.get(sequence), where);
    states += 1;
  }
  return { refused: refused.length, states };
}
