import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '../../base/json.ts';
import type { Clock, Random } from '../../base/system.ts';
import { parseObject } from '../journal/journal-format.ts';
import { LockedError } from '../store.ts';
import { errorCode, readWhole, writeAll, type Files, type OpenFile } from './files.ts';

/** What is known of a process. */
export interface ProcessIdentity {
  /** The machine's name, for messages. */
  readonly host: string;
  /**
   * Where process numbers mean the same: one boot of one machine, and in a container that container alone. Null where
   * that cannot be told, as under the permission model.
   */
  readonly place: string | null;
  readonly pid: number;
  /** When the process began, which tells it from a later one with its number; null where the system does not tell. */
  readonly started: string | null;
}

/** The machine, as far as a lock needs it. */
export interface Machine {
  self(): ProcessIdentity;
  /** When the process with this number began, null where that is hidden, `undefined` where there is none. */
  started(pid: number): string | null | undefined;
  wait(ms: number): Promise<void>;
  /** Calls `work` again and again, without keeping the process alive; returns what ends that. */
  every(ms: number, work: () => void): () => void;
}

export interface LockOptions {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly machine: Machine;
  /** Takes what an operator should know, one sentence each; it may name files. `error`: something has to be done. */
  readonly onNotice: (notice: string, level?: 'warn' | 'error') => void;
}

export const lockName = 'lock';

const renewMs = 5000;
const staleMs = 20_000;
const pollMs = 1000;

/**
 * The right to write to a directory, which one process has at a time: a file that names its holder, and which the
 * holder changes every 5 seconds. A holder that is known to be gone loses it at once; any other one, such as one on
 * another machine or in another container, when the file has not changed for 20 seconds. That may befall a process
 * that is frozen, so a holder checks `isHeld` before others rely on what it wrote.
 */
export class DirectoryLock {
  readonly #files: Files;
  /** Kept open, so that no other file is ever given the identity of this one. */
  readonly #file: OpenFile;
  readonly #identity: string;
  readonly #stopRenewing: () => void;

  private constructor(
    { files, machine }: LockOptions,
    file: OpenFile,
    identity: string,
    renew: (lock: DirectoryLock) => void,
  ) {
    this.#files = files;
    this.#file = file;
    this.#identity = identity;
    this.#stopRenewing = machine.every(renewMs, () => renew(this));
  }

  /** `onLost` is called where a renewal finds that another process has the directory. @throws LockedError */
  static async acquire(options: LockOptions, onLost: () => void): Promise<DirectoryLock> {
    const { files, clock, random, machine } = options;
    await files.prepare();
    try {
      const since = new Date(clock.now()).toISOString();
      const holder = { ...machine.self(), since, token: random(16).toString('hex') };
      const content = Buffer.from(`${JSON.stringify(holder)}\n`);
      const file = await take(options, lockName, content);
      let renewals = 0;
      return new DirectoryLock(options, file, await file.identity(), ({ isHeld }) => {
        renewals += 1;
        // The file changes behind its first line. A renewal that fails is followed by others.
        if (isHeld) file.write(Buffer.from(`${renewals}\n`), content.length).catch(() => undefined);
        else onLost();
      });
    } catch (error) {
      await files.close();
      throw error;
    }
  }

  get isHeld(): boolean {
    return this.#files.identity(lockName) === this.#identity;
  }

  async release(): Promise<void> {
    this.#stopRenewing();
    if (this.isHeld) await this.#files.remove(lockName).catch(() => undefined);
    await this.#file.close().catch(() => undefined);
    await this.#files.close();
  }
}

/**
 * Makes the file `name`, or takes the place of one whose holder is gone. Of several processes that take over at once,
 * one makes the claim: a file that is named after the identity of the stale one, and then takes its name.
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
    // Another process took over before.
    await claimed.close();
    await files.remove(claim);
  }
}

/** Makes a file with this content; `undefined` where there is one already. */
async function create(files: Files, name: string, content: Buffer): Promise<OpenFile | undefined> {
  try {
    const file = await files.open(name, 'exclusive');
    try {
      await writeAll(file, content, 0);
      await file.sync();
      return file;
    } catch (error) {
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
 * Waits until the holder of a lock file is gone. Returns the identity of the file, or `undefined` where there is none.
 * Only changes of the file are looked at, so clocks need not agree.
 * @throws LockedError where the holder is running, or goes on renewing its lock
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
    if (presence === 'gone' || waitedMs >= staleMs) return identity;
    const { pid, host, since } = holder ?? {};
    const who = `process ${String(pid)} on ${String(host)} since ${String(since)}`;
    if (presence === 'running' || (seen !== undefined && seen !== content)) {
      throw new LockedError(`Cannot open the store: ${who} holds it: stop it first`);
    }
    if (seen === undefined) {
      onNotice(`${who} holds ${files.directory}: waiting ${staleMs / 1000} seconds to see whether it is gone`);
    }
    seen = content;
    await machine.wait(pollMs);
  }
}

function presenceOf(holder: JsonObject | undefined, machine: Machine): 'gone' | 'running' | 'unknown' {
  const { place = null, pid, started } = holder ?? {};
  if (place === null || place !== machine.self().place || typeof pid !== 'number') return 'unknown';
  const now = machine.started(pid);
  if (now === undefined) return 'gone';
  if (now === null) return 'unknown';
  return now === started ? 'running' : 'gone';
}

/** This machine. Systems other than Linux have no namespaces, and the machine's name stands for its boot. */
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
    // Dead, and not yet fetched by its parent.
    return /^[ZX]/.test(stat?.[0] ?? '') ? undefined : (stat?.[19] ?? null);
  },
  wait: (ms) => delay(ms),
  every: (ms, work) => {
    const timer = setInterval(work, ms).unref();
    return () => clearInterval(timer);
  },
};

function bootAndNamespace(): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
}

/** The fields of `/proc/<pid>/stat` from the third on; the second may contain spaces, and ends in a parenthesis. */
function statusOf(pid: string): readonly string[] | null {
  return quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? null);
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
