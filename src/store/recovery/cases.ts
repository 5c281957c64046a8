import { inManual } from '../../base/manual.ts';

/**
 * The cases that a start may find: the table from which errors, the reference and tests follow.
 *
 * A snapshot ends with the commit `through` in its header, and a journal follows the commit `after`
 * in its manifest. So the journals hold everything that the snapshots do not, and every commit has
 * one place in that order. A start accepts these cases, and refuses others:
 *
 *   N1   no journal and no snapshot: a new store with a new epoch
 *   S6   snapshots that end with different commits: each is replayed from its own end
 *   J1   a damaged last line in the newest journal, which was not closed, and which does not
 *        show that it was several: a write that was cut short; it is left out and reported
 *   J3   a journal that holds a part of its first line and nothing else: it was cut short while
 *        it was made, and is ignored
 *   J6   several journals, if older ones are still needed: each is replayed up to where the
 *        next one begins; later lines were never acknowledged
 *   J8   journals that all snapshots have passed: ignored, and removed after the start
 *   L1   temporary files: ignored, and removed during the start
 *   L2   files that the store never makes: left alone
 *   C1   a collection that the program does not register: kept as it is
 *   C2   a registered collection that is new: empty
 */

/** A case in which a start is refused, because an operator has to decide. */
export interface Refusal {
  readonly found: string;
  readonly remedy: (data: string) => string;
  /** True if `cairn repair` accepts the finding, and so loses nothing. */
  readonly isAccepted?: true;
}

const repair = (data: string) => `cairn repair ${data}-new --data ${data}`;
const restore = (data: string) =>
  `restore a backup with "cairn restore BACKUP --data ${data}-new", or keep the readable part with ` +
  `"${repair(data)}", and serve ${data}-new`;
const putBack = (data: string) => `put the right file back; or ${restore(data)}`;
const accept = (data: string) => `accept the edit with "${repair(data)}", and serve ${data}-new`;
const redeclare = () =>
  'go back to the earlier declaration, and correct the records or the new one: ' +
  `see ${inManual('collections.md#changing-a-collection')}`;
const update = (data: string) =>
  'start the newer version of Cairn that wrote it, or restore an older backup with ' +
  `"cairn restore BACKUP --data ${data}-new", and serve ${data}-new`;

// prettier-ignore
export type RefusalLabel =
  'D1' | 'D2' | 'D3' | 'N2' | 'S1' | 'S2' | 'S3' | 'S4' | 'S5' | 'J2' | 'J7';

// prettier-ignore
export const refusals: Readonly<Record<RefusalLabel, Refusal>> = {
  D1: { found: 'records that do not fit their declaration', remedy: redeclare },
  D2: { found: 'a reference to a record that does not exist', remedy: redeclare },
  D3: { found: 'a value that must be unique but occurs twice', remedy: redeclare },
  N2: { found: 'a snapshot without a journal, or an incomplete copy', remedy: putBack },
  S1: { found: 'a damaged line in a snapshot', remedy: restore },
  S2: { found: 'a snapshot whose digest does not match: it was edited by hand, or is damaged', remedy: accept,
    isAccepted: true },
  S3: { found: 'a file from another store', remedy: putBack },
  S4: { found: 'a format from a newer version', remedy: update },
  S5: { found: 'a snapshot that is missing, or older or newer than the journals expect', remedy: putBack },
  J2: { found: 'a line that is damaged, missing, repeated, from another journal, or meaningless', remedy: restore },
  J7: { found: 'a journal that is missing, or does not end where the next one begins', remedy: putBack },
};
