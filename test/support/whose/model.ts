/** Who sees what, as the reference says it: answers are held against this model, which knows nothing of the source. */

export type Operation = 'list' | 'create' | 'read' | 'replace' | 'patch' | 'remove';
export type Cells = Readonly<Record<Operation, readonly string[]>>;

/** Who asks. A stranger has no user. */
export interface Asker {
  readonly userId?: number;
  readonly role?: string;
  readonly kind: 'anonymous' | 'bearer' | 'session' | 'key';
  readonly isReadOnly?: boolean;
}
export const stranger: Asker = { kind: 'anonymous' };

/** Who a request is for a route with this cell: nobody looks at the credentials of one that is open to all. */
export const seenBy = (cell: readonly string[], who: Asker): Asker => (cell.includes('public') ? stranger : who);

export interface Row {
  readonly id: number;
  readonly ownerId: number;
  /** Counts the changes. */
  readonly version: number;
  readonly values: Readonly<Record<string, unknown>>;
}

/** The words by which records decide: the owner, and fields that refer to users. */
export const isByRecord = (word: string): boolean => word === 'owner' || /Ids?$/.test(word);

/** Whether a cell lets somebody pass to a record; without one, to a record that is the best for this caller. */
export function holds(cell: readonly string[], who: Asker, row?: Row): boolean {
  return cell.some((word) => {
    if (word === 'public' || word === 'optional') return true;
    if (who.userId === undefined || (word === 'session' && who.kind !== 'session')) return false;
    if (who.role === 'admin' || word === 'user' || word === 'session') return true;
    if (!isByRecord(word)) return word === who.role;
    const named = row === undefined ? who.userId : word === 'owner' ? row.ownerId : row.values[word];
    return [named].flat().includes(who.userId);
  });
}

/** Whether somebody may set a field for these words, of a row that is not theirs to make but there already. */
export const maySet = (words: readonly string[], who: Asker, row?: Row): boolean =>
  who.role === 'admin' || words.includes(String(who.role)) ||
  (words.includes('owner') && who.userId !== undefined && (row === undefined || row.ownerId === who.userId));

/** The words that ask for no role, and for nothing of a record. */
const isOpen = (word: string): boolean => ['public', 'optional', 'user', 'session'].includes(word);

/** The cells as they are served: where roles alone may read, nobody else is shown lists. */
export function served(cells: Cells): Cells {
  const { list, read } = cells;
  if (read.some((word) => isOpen(word) || isByRecord(word))) return cells;
  const both = list.filter((word) => isByRecord(word) || read.includes(word));
  return { ...cells, list: list.some(isOpen) ? read : both.length > 0 ? both : ['admin'] };
}

/** Whether somebody who passes to the collection may read a record of it, or sees it in a list. */
export const mayRead = ({ read }: Cells, who: Asker, row: Row): boolean =>
  !read.some(isByRecord) || holds(read, who, row);
export const isListed = (cells: Cells, who: Asker, row: Row): boolean =>
  holds(cells.list, who, row) &&
  (cells.read.some(isOpen) && !cells.read.some(isByRecord) || holds(cells.read, who, row));

/** The status of a refusal before a record is looked up; `undefined` where there is none. */
export function refusal(cells: Cells, operation: Operation, who: Asker): number | undefined {
  const needed = operation === 'replace' || operation === 'patch' ? [cells[operation], cells.read] : [cells[operation]];
  const refusing = needed.find((cell) => !holds(cell, who));
  if (refusing !== undefined) return who.userId === undefined ? 401 : 403;
  return who.isReadOnly && operation !== 'list' && operation !== 'read' ? 403 : undefined;
}

/** The status of a request for a record that may not be there; `undefined` where it is answered. */
export function verdict(cells: Cells, operation: Operation, who: Asker, row: Row | undefined): number | undefined {
  const refused = refusal(cells, operation, who);
  if (refused !== undefined) return refused;
  if (row === undefined || !holds(cells.read, who, row)) return 404;
  return holds(cells[operation], who, row) ? undefined : 403;
}

/** What a follower of the changes is told of one: the kind of its event, if any. */
export function told(cells: Cells, who: Asker, before?: Row, after?: Row): string | undefined {
  const [saw, sees] = [before, after].map((row) => row !== undefined && isListed(cells, who, row));
  return sees ? (saw ? 'replaced' : 'created') : saw ? 'removed' : undefined;
}
