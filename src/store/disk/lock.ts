import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { threadId } from 'node:worker_threads';
import { FatalError } from '../../base/errors.ts';
import { type Clock, type Random, timers } from '../../base/system.ts';
import { parseObject } from '../format/journal.ts';
import { errorCode, isExhausted, readWhole, writeAll, type Files, type OpenFile } from './files.ts';

export interface ProcessIdentity {
  readonly host: string;
  /**
   * The scope of process numbers: one boot of one machine, or one container. Null if unknown, as
   * under the permission model.
   */
  readonly place: string | null;
  readonly pid: number;
}

export interface Machine {
  self(): ProcessIdentity;
  isRunning(pid: number): boolean;
  wait(ms: number): Promise<void>;
  /** Does not keep the process alive. The returned function ends the calls. */
  every(ms: number, work: () => void): () => void;
}

export interface LockOptions {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly machine: Machine;
  /** Receives sentences for the operator. `error` requires action. */
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

/** The age at which an unrenewed lock is lost, and the interval at which a start checks it. */
const staleMs = 20_000;
const pollMs = 1000;

const ownTokens = new Set<string>();

/** The lock file of a directory, and its content until it is renewed. */
export interface TakenLock {
  readonly file: OpenFile;
  readonly content: string;
  /** Lets this process take the lock once more. */
  forget(): void;
}

/**
 * Takes the exclusive right to write to a directory. The lock is a file that names its holder, who
 * changes it every 5 seconds. A holder known to be gone loses the lock at once. Any other holder,
 * such as one in another container, loses it when the file has not changed for 20 seconds.
 * @throws LockedError
 */
export async function takeLock(options: LockOptions): Promise<TakenLock> {
  const { clock, random, machine } = options;
  const since = new Date(clock.now()).toISOString();
  const token = random(16).toString('hex');
  const content = `${JSON.stringify({ ...machine.self(), since, token })}\n`;
  const forget = (): void => void ownTokens.delete(token);
  ownTokens.add(token);
  try {
    return { file: await take(options, lockName, Buffer.from(content)), content, forget };
  } catch (error) {
    forget();
    throw error;
  }
}

/**
 * Creates the file `name`, or replaces one left by its holder. If several processes take over at
 * once, one of them creates the claim, a file named after the stale file's identity, and renames
 * it.
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
    await claimed.close();
    await files.remove(claim);
  }
}

/**
 * Creates a file with this content, or an empty one if there is no room, which stands for an
 * unknown holder. Returns `undefined` if it exists.
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
 * Waits until the holder of a lock file is gone. Returns the file's identity, if it exists.
 * Compares only the file's content, so that clocks need not agree.
 * @throws LockedError if the holder is running, or renews its lock
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
    const { host, place, pid, since, token } = holder ?? {};
    const self = machine.self();
    const isHere = place !== null && place === self.place && typeof pid === 'number';
    // In a restarted container, this process has the number of the previous one.
    const isOurs = isHere && pid === self.pid && ownTokens.has(String(token));
    if (isHere && !isOurs && (pid === self.pid || !machine.isRunning(pid))) return identity;
    const who = `process ${String(pid)} on ${String(host)} since ${String(since)}`;
    if (isOurs || (seen !== undefined && seen !== content)) {
      throw new LockedError(`Cannot open the store: ${who} holds it: stop it first`);
    }
    if (waitedMs >= staleMs) return identity;
    if (seen === undefined) {
      const seconds = staleMs / 1000;
      onNotice(
        `${who} holds ${files.directory}: waiting up to ${seconds} seconds to see whether it is gone`,
      );
    }
    seen = content;
    await machine.wait(pollMs);
  }
}

/**
 * This machine. Systems other than Linux have no namespaces; their name stands for a boot. Threads
 * do not know each other's locks, so each except the first is a place of its own.
 */
export const systemMachine: Machine = {
  self: () => ({
    host: hostname(),
    place: quietly(placeOfThread),
    pid: process.pid,
  }),
  isRunning: (pid) => {
    try {
      return process.kill(pid, 0);
    } catch (error) {
      return errorCode(error) !== 'ESRCH';
    }
  },
  wait: (ms) => timers.sleep(ms),
  every: (ms, work) => {
    const timer = timers.setInterval(work, ms).unref();
    return () => timers.clearInterval(timer);
  },
};

function placeOfThread(): string {
  const thread = threadId === 0 ? '' : ` ${threadId}`;
  if (process.platform !== 'linux') return hostname() + thread;
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return `${boot} ${readlinkSync('/proc/self/ns/pid')}${thread}`;
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
