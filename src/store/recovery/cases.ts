/**
 * What a start may find, and what it makes of it: the one table from which errors, the README and the tests follow.
 *
 * Snapshots end with a commit (`through` in their headers), and a journal follows the commit `after` its manifest. So
 * the journals hold whatever the snapshots do not, and every commit has its one place in that order.
 */

/** What a start accepts. */
export const accepted = {
  N1: { found: 'no journal and no snapshot', done: 'a new store with a new epoch' },
  S6: { found: 'snapshots that end with different commits', done: 'each is replayed from its own end' },
  J1: {
    found: 'a damaged last line in the newest journal, which was not closed',
    done: 'a write that was cut short: left out, kept aside in a file that ends in .torn, and reported',
  },
  J6: { found: 'several journals, whose older ones are still needed', done: 'they are replayed in order' },
  J8: { found: 'journals that all snapshots have passed', done: 'ignored, and removed after the start' },
  L1: { found: 'temporary files', done: 'ignored, and removed during the start' },
  L2: { found: 'files that the store never makes', done: 'left alone' },
  C1: { found: 'a collection that the program does not register', done: 'kept as it is' },
  C2: { found: 'a registered collection that is new', done: 'empty' },
} as const satisfies Record<string, { readonly found: string; readonly done: string }>;

/** A case in which a start is refused, because only an operator can decide. */
export interface Refusal {
  /** What was found, for messages and for the README. */
  readonly found: string;
  /** What to do about it. */
  readonly remedy: string;
  /** Whether `cairn repair` accepts what was found, and so loses nothing. */
  readonly isAccepted?: true;
}

const restore = '`cairn restore` a backup, or `cairn repair`, which keeps what can be read';
const putBack = 'put the right file back, or `cairn restore` a backup; `cairn repair` keeps what can be read';
const redeclare = 'go back to the former declaration, or make the new one fit: see the README, "Changing a collection"';
const emptyIt = 'empty the directory, and begin again';

export const refusals = {
  D1: { found: 'a record that does not fit its declaration', remedy: redeclare },
  N2: { found: 'a snapshot without a journal', remedy: putBack },
  N3: { found: 'a backup, a restore or a repair was cut short', remedy: emptyIt },
  S1: { found: 'a damaged line in a snapshot', remedy: restore },
  S2: {
    found: 'its digest does not fit: a snapshot that was edited by hand, or is damaged',
    remedy: '`cairn repair`, which accepts the edit',
    isAccepted: true,
  },
  S3: { found: 'a file of another store', remedy: putBack },
  S4: { found: 'a format of a newer version', remedy: 'start the newer version of Cairn that wrote it' },
  S5: { found: 'a snapshot that is missing, or of another time than the journal says', remedy: putBack },
  S7: { found: 'a snapshot that goes further than the journals', remedy: putBack },
  J2: { found: 'a line that is damaged, missing, repeated or of another journal', remedy: restore },
  J3: { found: 'a gap in the sequence', remedy: restore },
  J4: { found: 'something follows the line that closed the journal', remedy: restore },
  J5: { found: 'a line that is intact and makes no sense', remedy: restore },
  J7: { found: 'a journal that is missing, or does not end where the next one begins', remedy: putBack },
  J9: { found: 'a damaged first line of a journal', remedy: restore },
} as const satisfies Record<string, Refusal>;

export type RefusalLabel = keyof typeof refusals;
