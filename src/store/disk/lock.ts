import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { FatalError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { type Clock, type Random, timers } from '../../base/system.ts';
import { parseObject } from '../format/journal.ts';
import { errorCode, isExhausted, readWhole, writeAll, type Files, type OpenFile } from './files.ts';

/** What the lock file says of its holder. */
export interface ProcessIdentity {
  /** The name of the machine, for messages. */
  readonly host: string;
  /**
   * The scope of process numbers: one boot of one machine, or one container. Null where
   * it is unknown, as under the permission model.
   */
  readonly place: string | null;
  readonly pid: number;
  /** When the process began, since numbers are used again; null where it is unknown. */
  readonly started: string | null;
}

/** The part of a machine that a lock needs. */
export interface Machine {
  self(): ProcessIdentity;
  /**
   * When the process began; null where that is hidden, `undefined` where there is no
   * process.
   */
  started(pid: number): string | null | undefined;
  wait(ms: number): Promise<void>;
  /**
   * Calls `work` periodically, without keeping the process alive. Returns a function to
   * stop it.
   */
  every(ms: number, work: () => void): () => void;
}

export interface LockOptions {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly machine: Machine;
  /** Takes a sentence for the operator. With `error`, the operator has to do something. */
  readonly onNotice: (notice: string, level?: 'warn' | 'error') => void;
}

/** Another process has the directory, or may have it. The message names the process. */
export class LockedError extends FatalError {
  override readonly name = 'LockedError';

  constructor(message: string) {
    super(75, message);
  }
}

export const lockName = 'lock';

const renewMs = 5000;
const staleMs = 20_000;
const pollMs = 1000;

/**
 * The right to write to a directory, which one process has at a time. It is a file that
 * names its holder, and that the holder changes every 5 seconds. A holder that is known
 * to be gone loses the lock at once. Any other holder, such as one in another container,
 * loses it when the file has not changed for 20 seconds. A frozen process may lose it in
 * this way, so the holder calls `assertHeld` before others rely on what it wrote.
 */
export class DirectoryLock {
  readonly #files: Files;
  /** Kept open, so that no other file can get its identity. */
  readonly #file: OpenFile;
  readonly #stopRenewing: () => void;

  private constructor(
    { files, machine }: LockOptions,
    file: OpenFile,
    renew: (lock: DirectoryLock) => void,
  ) {
    this.#files = files;
    this.#file = file;
    this.#stopRenewing = machine.every(renewMs, () => renew(this));
  }

  /**
   * `onLost` is called with the error of `assertHeld` when a renewal meets it. @throws
   * LockedError
   */
  static async acquire(
    options: LockOptions,
    onLost: (error: unknown) => void,
  ): Promise<DirectoryLock> {
    const { files, clock, random, machine } = options;
    try {
      await files.prepare();
      const since = new Date(clock.now()).toISOString();
      const holder = { ...machine.self(), since, token: random(16).toString('hex') };
      const content = Buffer.from(`${JSON.stringify(holder)}\n`);
      const file = await take(options, lockName, content);
      let renewals = 0;
      return new DirectoryLock(options, file, (lock) => {
        renewals += 1;
        try {
          lock.assertHeld();
        } catch (error) {
          return onLost(error);
        }
        // Writes all of it, for which there may have been no room. If that fails, the next
        // renewal does it.
        const renewed = Buffer.concat([content, Buffer.from(`${renewals}\n`)]);
        writeAll(file, renewed, 0).catch(() => undefined);
      });
    } catch (error) {
      await files.close();
      throw error;
    }
  }

  /** @throws where another process has the lock, and where the system does not tell */
  assertHeld(): void {
    if (this.#files.identity(lockName) === this.#file.identity) return;
    throw new Error('Cannot write: the lock file is not ours any more');
  }

  async release(): Promise<void> {
    this.#stopRenewing();
    try {
      this.assertHeld();
      await this.#files.remove(lockName);
    } catch {
      // It is another's, or a later start finds that its holder is gone.
    }
    await this.#file.close().catch(() => undefined);
    await this.#files.close();
  }
}

/**
 * Makes the file `name`, or replaces one that its holder has left. Where several processes
 * take over at once, one of them makes the claim, a file that is named after the identity
 * of the stale file, and renames it.
 */
async function take(options: LockOptions, name: string, content: Buffer): Promise<OpenFile> {
  const { files } = options;
  for (;;) {
    const made = await create(files, name, content);
    if (made !== undefined) return made;
    const stale = await waitUntilGone(options, name);
    if (stale === undefined) continue;
    const claim = `${name}.${stale}`;
    const claimed = await take(options, claim, content);
    if (files.identity(name) === stale) {
      await files.rename(claim, name);
      return claimed;
    }
    // Another process was faster.
    await claimed.close();
    await files.remove(claim);
  }
}

/**
 * Makes a file with this content, or without where there is no room: it stands for a holder
 * that others do not know. Returns `undefined` where there is one already.
 */
async function create(files: Files, name: string, content: Buffer): Promise<OpenFile | undefined> {
  try {
    const file = await files.open(name, 'exclusive');
    try {
      await writeAll(file, content, 0);
      await file.sync();
      return file;
    } catch (error) {
      if (isExhausted(error)) return file;
      await file.close().catch(() => undefined);
      await files.remove(name).catch(() => undefined);
      throw error;
    }
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return undefined;
    throw error;
  }
}

/**
 * Waits until the holder of a lock file is gone. Returns the identity of the file, or
 * `undefined` where there is none. Compares only the content of the file, so that clocks
 * need not agree.
 * @throws LockedError where the holder is running, or renews its lock
 */
export async function waitUntilGone(
  { files, machine, onNotice }: Pick<LockOptions, 'files' | 'machine' | 'onNotice'>,
  name = lockName,
): Promise<string | undefined> {
  let seen: string | undefined;
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const identity = files.identity(name);
    const content = (await readWhole(files, name))?.toString();
    if (identity === undefined || content === undefined) return undefined;
    const holder = parseObject(content.split('\n', 1).join(''));
    const presence = presenceOf(holder, machine);
    if (presence === 'gone') return identity;
    const { pid, host, since } = holder ?? {};
    const who = `process ${String(pid)} on ${String(host)} since ${String(since)}`;
    if (presence === 'running' || (seen !== undefined && seen !== content)) {
      throw new LockedError(`Cannot open the store: ${who} holds it: stop it first`);
    }
    if (waitedMs >= staleMs) return identity;
    if (seen === undefined) {
      const seconds = staleMs / 1000;
      onNotice(
        `${who} holds ${files.directory}: waiting ${seconds} seconds to see whether it is gone`,
      );
    }
    seen = content;
    await machine.wait(pollMs);
  }
}

function presenceOf(
  holder: JsonObject | undefined,
  machine: Machine,
): 'gone' | 'running' | 'unknown' {
  const { place = null, pid, started = null } = holder ?? {};
  const isHere = place !== null && place === machine.self().place;
  if (!isHere || typeof pid !== 'number') return 'unknown';
  const now = machine.started(pid);
  if (now === undefined) return 'gone';
  if (now === null || started === null) return 'unknown';
  return now === started ? 'running' : 'gone';
}

/** This machine. Other systems than Linux have no namespaces; their name stands for a boot. */
export const systemMachine: Machine = {
  self: () => ({
    host: hostname(),
    place: process.platform === 'linux' ? quietly(bootAndNamespace) : hostname(),
    pid: process.pid,
    started: statusOf('self')?.[19] ?? null,
  }),
  started: (pid) => {
    try {
      process.kill(pid, 0);
    } catch (error) {
      if (errorCode(error) === 'ESRCH') return undefined;
    }
    const stat = statusOf(pid === process.pid ? 'self' : String(pid));
    // A dead process, while its parent has not asked for its exit code.
    return /^[ZX]/.test(stat?.[0] ?? '') ? undefined : (stat?.[19] ?? null);
  },
  wait: (ms) => timers.sleep(ms),
  every: (ms, work) => {
    const timer = timers.setInterval(work, ms).unref();
    return () => timers.clearInterval(timer);
  },
};

function bootAndNamespace(): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
}

/** The fields of `/proc/<pid>/stat` after the second, which is in parentheses. */
function statusOf(pid: string): readonly string[] | null {
  const read = (): string => readFileSync(`/proc/${pid}/stat`, 'latin1');
  return quietly(() => read().split(') ').at(-1)?.split(' ') ?? null);
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
