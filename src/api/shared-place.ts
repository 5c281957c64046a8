import type { KeyRing } from '../auth/keys.ts';
import type { Handle } from '../http/message.ts';
import type { Image } from '../store/format/snapshot.ts';
import type { CommitLog } from '../store/log.ts';
import type { Tables } from '../store/memory/table.ts';
import type { Store } from '../store/store.ts';

/** A place that several processes share, which has the data instead of a directory. */
export interface SharedPlace {
  /** The beginning of all keys there. */
  readonly prefix: string;
  /** Makes the log of the store. */
  log(tables: Tables): CommitLog;
  /** Calls `onRing` with the key ring, and makes it if there is none. @throws KeyRingError */
  loadKeys(): Promise<void>;
  /** Called with each ring, and never with an earlier one afterwards. */
  onRing: (ring: KeyRing) => void;
  /**
   * Replaces the key ring by what `change` makes of it, and returns the result. `change` is
   * called again if another process replaces it meanwhile. @throws KeyRingError
   */
  changeKeys<R extends KeyRing | undefined>(change: (ring?: KeyRing) => R): Promise<R>;
  /**
   * Makes a handler that answers with `handle` only what `store` has published recently, and
   * that first fetches the commits of others if the answer may depend on them. The targets
   * `alwaysServed` are answered from what there is.
   */
  onlyCurrent(handle: Handle, store: Store, alwaysServed: ReadonlySet<string>): Handle;
}

/**
 * The purpose of a process there: it serves, or runs a command. Only servers prepare the place, and
 * add to its declaration; `check` compares its own.
 */
export type SharedPurpose = 'serve' | 'check' | 'command';

/** Keeps the generated password of the first administrator until it is changed. */
export interface PasswordPlace {
  /** Keeps a password unless another process has kept one; returns the kept one and its place. */
  keep(password: string): Promise<{ readonly password: string; readonly where: string }>;
  /** Removes the password. May reject if none is kept. */
  forget(): Promise<unknown>;
}

/** The tools of commands for a shared place. */
export interface SharedTools extends SharedPlace, PasswordPlace {
  /** Reads all records and the key ring, as a server does that starts now. */
  read(): Promise<{ readonly image: Image; readonly keys: Buffer | undefined }>;
  /** Writes a copy to a place without data. */
  write(image: Image): Promise<void>;
  /** Gives the data a new epoch: running servers end, and the next one declares anew. */
  renewEpoch(): Promise<void>;
  /** Rejects if no write succeeds. */
  testRoom(): Promise<void>;
}
