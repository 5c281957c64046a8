import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Collection, RecordChange, StoredRecord } from '../../src/store/store.ts';
import type { Thing } from '../../test/support/cluster/nodes.ts';

export type Kind = 'add' | 'claim' | 'remove' | 'set' | 'read';
/** An operation began: its id, its kind, the key of its record, and the time. */
export type Started = readonly ['s', id: string, kind: Kind, key: string, at: number];
/**
 * The end of an operation: `done` or `refused`, with the revisions of the record that it saw and wrote; `unknown`; or
 * `failed`, so nothing was written.
 */
export type Ended = readonly [
  'e', id: string, outcome: 'done' | 'refused' | 'unknown' | 'failed', sees: number, revision: number, at: number,
];

interface Operation {
  readonly id: string;
  readonly kind: Kind;
  readonly key: string;
  readonly from: number;
  /** Absent if its process was killed, so that its outcome is unknown. */
  outcome: Ended[2];
  sees: number;
  revision: number;
  to: number;
}

/** Collects all changes in the order of the log, from a node without faults. */
export class Witness {
  /** The revisions of each key's record, in order, including removals. */
  readonly revisions = new Map<string, number[]>();
  readonly written = new Map<string, number>();
  readonly problems: string[] = [];
  /** The names of the current records, by their ids and as a set. */
  readonly #names = new Map<number, string>();
  readonly #holders = new Set<string>();
  #highestId = 0;
  #last = 0;

  readonly see = (changes: readonly RecordChange[]): void => {
    for (const { id, record, sequence } of changes) {
      if (sequence !== this.#last && sequence !== this.#last + 1) {
        this.problems.push(`the log goes from ${this.#last} to ${sequence}`);
      }
      this.#last = sequence;
      this.#note(id, record, sequence);
    }
  };

  #note(id: number, record: StoredRecord | undefined, sequence: number): void {
    const former = this.#names.get(id);
    const { name, by } = isThing(record) ? record : { name: former ?? '', by: undefined };
    if (record === undefined) {
      if (former === undefined) this.problems.push(`${id} is removed, and was not there`);
      this.#names.delete(id);
      this.#holders.delete(name);
    } else if (former === undefined) {
      if (id <= this.#highestId) this.problems.push(`the id ${id} is given twice`);
      if (this.#holders.has(name)) this.problems.push(`${name} is there twice`);
      this.#highestId = Math.max(this.#highestId, id);
      this.#names.set(id, name);
      this.#holders.add(name);
    }
    const revisions = this.revisions.get(name) ?? [];
    if (revisions.at(-1) !== sequence) revisions.push(sequence);
    this.revisions.set(name, revisions);
    if (by === undefined) return;
    const before = this.written.get(by);
    if (before !== undefined && before !== sequence) {
      this.problems.push(`${by} is applied twice: ${before}, ${sequence}`);
    }
    this.written.set(by, sequence);
  }
}

export interface Verdict {
  readonly operations: number;
  readonly done: number;
  readonly refused: number;
  readonly unknown: number;
  /** Operations of unknown outcome that had been applied. */
  readonly unknownApplied: number;
  readonly failed: number;
  readonly killed: number;
  readonly problems: readonly string[];
}

/** Compares the operations in the files with the changes that the witness has seen. */
export function judge(files: readonly string[], witness: Witness): Verdict {
  const operations = files.flatMap(readHistory);
  const problems = [...witness.problems];
  const count = (holds: (operation: Operation) => boolean): number => operations.filter(holds).length;
  for (const operation of operations) {
    const problem = contentProblem(operation, witness);
    if (problem !== undefined) problems.push(`${operation.id} (${operation.kind} ${operation.key}): ${problem}`);
  }
  problems.push(...orderProblems(operations, witness));
  return {
    operations: operations.length,
    done: count(({ outcome }) => outcome === 'done'),
    refused: count(({ outcome }) => outcome === 'refused'),
    unknown: count(({ outcome, to }) => outcome === 'unknown' && to !== Infinity),
    unknownApplied: count(({ outcome, id }) => outcome === 'unknown' && witness.written.has(id)),
    failed: count(({ outcome }) => outcome === 'failed'),
    killed: count(({ to }) => to === Infinity),
    problems,
  };
}

function readHistory(file: string): Operation[] {
  const operations = new Map<string, Operation>();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (!line.endsWith(']')) continue;
    const entry = JSON.parse(line) as Started | Ended;
    if (entry[0] === 's') {
      const [, id, kind, key, from] = entry;
      operations.set(id, { id, kind, key, from, outcome: 'unknown', sees: 0, revision: 0, to: Infinity });
    } else {
      const [, id, outcome, sees, revision, to] = entry;
      Object.assign(operations.get(id) ?? {}, { outcome, sees, revision, to });
    }
  }
  return [...operations.values()];
}

/** Returns the contradiction between an operation's result and the log, if any. */
function contentProblem({ id, key, kind, outcome, sees, revision }: Operation, witness: Witness): string | undefined {
  const written = witness.written.get(id);
  const revisions = witness.revisions.get(key) ?? [];
  if (outcome === 'failed') return written === undefined ? undefined : `failed, and is in the log at ${written}`;
  if (outcome === 'unknown') return undefined;
  if (outcome === 'done' && kind !== 'read') {
    if (written !== revision) return `acknowledged at ${revision}, and in the log at ${written}`;
    const before = predecessor(revisions, revision);
    const isGone = before !== 0 && sees === 0 && kind !== 'remove' && isRemoval(witness, before);
    if (sees !== before && !isGone) return `saw ${sees}; before it the log has ${before}`;
    return undefined;
  }
  if (written !== undefined) return `wrote nothing, and is in the log at ${written}`;
  return sees === 0 || revisions.includes(sees) ? undefined : `saw ${sees}, which the log does not have`;
}

/** True if a revision is a removal, recognised by the record that each removal adds in its commit. */
function isRemoval(witness: Witness, revision: number): boolean {
  for (const [name, revisions] of witness.revisions) {
    if (name.startsWith('removed by ') && revisions.includes(revision)) return true;
  }
  return false;
}

function predecessor(revisions: readonly number[], revision: number): number {
  return revisions.findLast((candidate) => candidate < revision) ?? 0;
}

/**
 * Checks the real-time order over all nodes. An operation that ended before another one began comes first in the log.
 * The place of a read is where its record had the revision that it saw.
 */
function orderProblems(operations: readonly Operation[], witness: Witness): string[] {
  const problems: string[] = [];
  const isKnown = ({ outcome, to }: Operation) => to !== Infinity && (outcome === 'done' || outcome === 'refused');
  const known = operations.filter(isKnown);
  const byEnd = known.toSorted((a, b) => a.to - b.to);
  const removals = new Set<number>();
  for (const [name, revisions] of witness.revisions) {
    if (name.startsWith('removed by ')) for (const revision of revisions) removals.add(revision);
  }
  let ended = 0;
  let latest = 0;
  for (const operation of known.toSorted((a, b) => a.from - b.from)) {
    for (let next = byEnd[ended]; next !== undefined && next.to < operation.from; next = byEnd[ended]) {
      latest = Math.max(latest, next.revision, next.sees);
      ended += 1;
    }
    const { id, revision, sees, key } = operation;
    if (revision > 0) {
      if (revision <= latest) problems.push(`${id} is at ${revision}; before it began, ${latest} was acknowledged`);
      continue;
    }
    const revisions = witness.revisions.get(key) ?? [];
    if (sees > 0) {
      const next = revisions.find((candidate) => candidate > sees) ?? Infinity;
      if (next <= latest) problems.push(`${id} saw ${sees} of ${key}; before it began, ${next} was acknowledged`);
    } else {
      // The read saw no record: before the first revision, or between a removal and the next one.
      const last = revisions.findLast((candidate) => candidate <= latest);
      const isThere = last !== undefined && !removals.has(last);
      const goes = isThere && revisions.some((candidate) => candidate > last && removals.has(candidate));
      if (isThere && !goes) problems.push(`${id} saw no ${key}; before it began, ${last} was acknowledged`);
    }
  }
  return problems;
}

function isThing(record: StoredRecord | undefined): record is Thing {
  return record !== undefined && 'name' in record;
}

/** A short hash of all records of a node. */
export function hashThings(things: Collection<Thing>): string {
  const hash = createHash('sha256');
  for (const block of things.view().blocks) for (const record of block) hash.update(JSON.stringify(record));
  return hash.digest('hex').slice(0, 16);
}
