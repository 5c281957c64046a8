/** What is wrong with a store on disk. `edited`: well-formed, but not the bytes that the store wrote. */
export type DamageKind = 'damaged' | 'edited' | 'missing' | 'foreign' | 'newer_format';

/** The files are not what the store left, and only the operator can decide. Its message names the file and place. */
export class StoreDamageError extends Error {
  override readonly name = 'StoreDamageError';
  readonly kind: DamageKind;
  readonly file: string;
  /** The byte at which the trouble begins. */
  readonly offset: number;
  /** The case of the table in `recovery.ts`. */
  readonly label: string;

  constructor(label: string, kind: DamageKind, file: string, offset: number, problem: string) {
    super(`Cannot open the store: ${file}, byte ${offset}: ${problem} [${label}]`);
    this.kind = kind;
    this.file = file;
    this.offset = offset;
    this.label = label;
  }
}

/** Another process has the directory, or may have it. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
}
