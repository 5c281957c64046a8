import type { KeyRing } from '../auth/keys.ts';
import type { Handle } from '../http/message.ts';
import type { Image } from '../store/format/snapshot.ts';
import type { CommitLog } from '../store/log.ts';
import type { Tables } from '../store/memory/table.ts';
import type { Store } from '../store/store.ts';

/** The place where several processes share the data, instead of a directory. */
export interface SharedPlace {
  readonly prefix: string;
  log(tables: Tables): CommitLog;
  /** Passes the key ring to `onRing`, and creates it if there is none. @throws KeyRingError */
  loadKeys(): Promise<void>;
  /** Receives each new ring, never an older one again. */
  onRing: (ring: KeyRing) => void;
  /**
   * Replaces the key ring by the result of `change`, and returns it. If another process was faster,
   * `change` is called again.
   * @throws KeyRingError
   */
  changeKeys<R extends KeyRing | undefined>(change: (ring?: KeyRing) => R): Promise<R>;
  /**
   * Returns a handler that passes requests to `handle`. It responds only with what `store`
   * published recently, and first fetches others' commits if the response may depend on them. The
   * targets `alwaysServed` do not wait.
   */
  onlyCurrent(handle: Handle, store: Store, alwaysServed: ReadonlySet<string>): Handle;
}

/**
 * A process serves or runs a command. Only servers prepare the place and extend its declaration;
 * `check` compares its own.
 */
export type SharedPurpose = 'serve' | 'check' | 'command';

/** Keeps the generated password of the first administrator until it is changed. */
export interface PasswordPlace {
  /** Keeps a password unless another process has kept one. Returns the kept one and its place. */
  keep(password: string): Promise<{ readonly password: string; readonly where: string }>;
  /** Removes the password. May reject if none is kept. */
  forget(): Promise<unknown>;
}

export interface SharedTools extends SharedPlace, PasswordPlace {
  /** Reads all records and the key ring, like a server that starts now. */
  read(): Promise<{ readonly image: Image; readonly keys: Buffer | undefined }>;
  /** Writes a copy to a place without data. */
  write(image: Image): Promise<void>;
  /**
   * Gives the data a new epoch: running servers end, and the next one declares the collections
   * again.
   */
  renewEpoch(): Promise<void>;
  /** Makes a test write. Rejects if it fails. */
  testRoom(): Promise<void>;
}
