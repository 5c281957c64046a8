import { writeAll } from './files.ts';
import { lockName, takeLock, type LockOptions, type TakenLock } from './lock.ts';

const renewMs = 5000;

/**
 * The right to write to a directory: this process has its lock, and nothing has failed. After the
 * first failure only the lock is still renewed. A frozen process may lose the lock, so `assertHeld`
 * is called before others rely on a write.
 */
export class Fence {
  failure: unknown;
  onFailure: (error: unknown) => void = () => undefined;
  readonly #options: LockOptions;
  /** The lock file, kept open so that no other file can get its identity. */
  #lock: TakenLock | undefined;
  #stopRenewing: () => void = () => undefined;

  constructor(options: LockOptions) {
    this.#options = options;
  }

  /** Creates the directory if necessary, and takes its lock. @throws LockedError */
  async acquire(): Promise<void> {
    const { files, machine } = this.#options;
    try {
      await files.prepare();
      const { file, content } = (this.#lock = await takeLock(this.#options));
      let renewals = 0;
      this.#stopRenewing = machine.every(renewMs, () => {
        renewals += 1;
        try {
          this.#assertOurs();
        } catch (error) {
          return this.fail(error);
        }
        // Writes the whole content, as the first write may have found no room. If this fails, the
        // next renewal repeats it.
        writeAll(file, Buffer.from(`${content}${renewals}\n`), 0).catch(() => undefined);
      });
    } catch (error) {
      await files.close();
      throw error;
    }
  }

  async release(): Promise<void> {
    const { files } = this.#options;
    this.#stopRenewing();
    try {
      this.#assertOurs();
      await files.remove(lockName);
    } catch {
      // The file is another process's, or a later start finds that its holder is gone.
    }
    this.#lock?.forget();
    await this.#lock?.file.close().catch(() => undefined);
    await files.close();
  }

  /** @throws if another process has the directory, or anything has failed before */
  assertHeld(): void {
    try {
      this.#assertOurs();
    } catch (error) {
      this.fail(error);
    }
    if (this.failure !== undefined) throw this.failure;
  }

  /** Runs work whose failure leaves the state of the disk unknown. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    this.assertHeld();
    try {
      return await work();
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  fail(error: unknown): void {
    if (this.failure !== undefined) return;
    this.failure = error;
    this.onFailure(error);
  }

  #assertOurs(): void {
    const ours = this.#lock?.file.identity;
    if (ours !== undefined && this.#options.files.identity(lockName) === ours) return;
    throw new Error('Cannot write: the lock file is no longer ours');
  }
}
