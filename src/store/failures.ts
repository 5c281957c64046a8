/** The files are not what the store left, and only the operator can decide. Its message names the file and place. */
export class StoreDamageError extends Error {
  override readonly name = 'StoreDamageError';
  /** The case of the table in `recovery.ts`. */
  readonly label: string;
  readonly file: string;
  /** The byte at which the trouble begins. */
  readonly offset: number;

  constructor(label: string, file: string, offset: number, problem: string) {
    super(`Cannot open the store: ${file}, byte ${offset}: ${problem} [${label}]`);
    this.label = label;
    this.file = file;
    this.offset = offset;
  }
}

/** Another process has the directory, or may have it. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
}
