import { invariant } from '../../base/errors.ts';
import { DirectoryLock, type LockOptions } from './lock.ts';

/**
 * The right to write to a directory: this process has its lock, and nothing has failed. After the
 * first failure no write begins but the renewals of the lock.
 */
export class Fence {
  /** The first failure. */
  failure: unknown;
  /** Called with the first failure. */
  onFailure: (error: unknown) => void = () => undefined;
  #lock: DirectoryLock | undefined;

  /** Takes the lock. @throws LockedError */
  async acquire(options: LockOptions): Promise<void> {
    this.#lock = await DirectoryLock.acquire(options, (error) => this.fail(error));
  }

  async release(): Promise<void> {
    await this.#lock?.release();
  }

  /** @throws where another process has the directory, or something has failed before */
  assertHeld(): void {
    try {
      invariant(this.#lock !== undefined, 'the directory is used before it is locked');
      this.#lock.assertHeld();
    } catch (error) {
      this.fail(error);
    }
    if (this.failure !== undefined) throw this.failure;
  }

  /** Runs work; its error means that nobody knows what is on the disk. */
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
}
