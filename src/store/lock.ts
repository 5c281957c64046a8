import { once } from 'node:events';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import type { JsonObject } from '../base/json.ts';
import type { Clock, Random } from '../base/system.ts';
import { errorCode, readWhole, writeAll, type Files } from './files.ts';
import { parseObject } from './journal-format.ts';
import { LockedError } from './store.ts';

/** What can be known of a process; null where the system does not tell. */
export interface ProcessIdentity {
  readonly host: string;
  /** Differs after each start of the machine. */
  readonly boot: string | null;
  /** Where process numbers count: a container has its own. */
  readonly namespace: string | null;
  readonly pid: number;
  /** When the process began, in ticks since the boot: tells it from a later one with the same number. */
  readonly started: string | null;
}

/** The processes of this machine, as far as a lock needs them. */
export interface ProcessTable {
  self(): ProcessIdentity;
  /** Of a process in our own namespace: when it began (null where that is hidden); `undefined` when it is gone. */
  started(pid: number): string | null | undefined;
  /** Takes a name that only one process at a time can have, until it ends; `undefined` where there is no such thing. */
  claim(directory: string): Promise<Claim | undefined>;
}

export interface Claim {
  readonly granted: boolean;
  release(): Promise<void>;
}

export interface LockOptions {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly processes: ProcessTable;
}

export const lockName = 'lock';

const onLinux = process.platform === 'linux';

/**
 * The directory belongs to one process. The lock is a file that names its holder; on Linux a socket of the abstract
 * namespace, which goes with its process, stands beside it. A lock is taken over only from a holder that is provably
 * gone: the machine was started anew, or no process of the same namespace has that number and start time.
 *
 * Two processes that take the same stale lock over at once may both remove it; then the file is the second one's, and
 * the first finds at its next fence that it has lost it.
 */
export class Lock {
  readonly #files: Files;
  readonly #identity: string;
  readonly #claim: Claim | undefined;

  private constructor(files: Files, identity: string, claim: Claim | undefined) {
    this.#files = files;
    this.#identity = identity;
    this.#claim = claim;
  }

  /** @throws LockedError naming the holder */
  static async acquire({ files, clock, random, processes }: LockOptions): Promise<Lock> {
    const claim = await processes.claim(files.directory);
    const self = processes.self();
    const since = new Date(clock.now()).toISOString();
    const content = `${JSON.stringify({ ...self, since, token: random(16).toString('hex') })}\n`;
    try {
      if (claim?.granted === false) throw await heldBy(files, 'it is running on this machine');
      for (let attempt = 1; attempt <= 10; attempt += 1) {
        const identity = await create(files, content);
        if (identity !== undefined) return new Lock(files, identity, claim);
        const stale = await readWhole(files, lockName);
        if (stale === undefined) continue;
        const doubt = presence(parseObject(stale.toString()), processes, self, claim?.granted === true);
        if (doubt !== undefined) throw await heldBy(files, doubt);
        await files.remove(lockName).catch((error: unknown) => {
          if (errorCode(error) !== 'ENOENT') throw error;
        });
      }
      throw await heldBy(files, 'others are taking it at this moment');
    } catch (error) {
      await claim?.release();
      throw error;
    }
  }

  /** Whether the lock file is still the one that we made. */
  held(): boolean {
    return this.#files.identity(lockName) === this.#identity;
  }

  async release(): Promise<void> {
    if (this.held()) await this.#files.remove(lockName).catch(() => undefined);
    await this.#claim?.release();
  }
}

/** Makes the lock file and returns its identity; `undefined` where there is one already. */
async function create(files: Files, content: string): Promise<string | undefined> {
  const file = await files.open(lockName, 'exclusive').catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  if (file === undefined) return undefined;
  try {
    await writeAll(file, Buffer.from(content), 0);
    // An empty lock after a power cut would name nobody, and so could not be shown to be stale.
    await file.sync();
  } catch (error) {
    await files.remove(lockName).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
  const identity = files.identity(lockName);
  return (await readWhole(files, lockName))?.toString() === content ? identity : undefined;
}

/** Why the holder may still be there; `undefined` when it is gone. */
function presence(
  holder: JsonObject | undefined,
  processes: ProcessTable,
  self: ProcessIdentity,
  claimed: boolean,
): string | undefined {
  // Cut short while it was written. If its writer were there, our claim would have been refused.
  if (holder === undefined) return claimed ? undefined : 'the lock file is cut short';
  const { host, boot, namespace, pid, started } = holder;
  if (host !== self.host) return 'it is on another machine, or in another container';
  const known = typeof boot === 'string' && typeof namespace === 'string' && self.boot !== null;
  if (!known && !claimed) return 'without reading /proc it cannot be told whether it is gone';
  if (known && boot !== self.boot) return undefined;
  if (known && namespace !== self.namespace) return 'it is in another container';
  const now = typeof pid === 'number' ? processes.started(pid) : undefined;
  if (now === undefined || (now !== null && typeof started === 'string' && now !== started)) return undefined;
  return now === started ? 'it is running' : 'a process has its number, and when that one began is not shown';
}

async function heldBy(files: Files, reason: string): Promise<LockedError> {
  const holder = parseObject((await readWhole(files, lockName))?.toString() ?? '');
  const who = holder
    ? `process ${String(holder['pid'])} on ${String(holder['host'])} since ${String(holder['since'])}`
    : 'another process';
  const remedy = reason.startsWith('it is running')
    ? ': stop it first'
    : `. If that process is gone, remove the file "${lockName}" in ${files.directory}`;
  return new LockedError(`Cannot open the store: ${who} holds it (${reason})${remedy}`);
}

/**
 * The machine's own processes. What `/proc` does not show under the permission model is null. Other systems than Linux
 * have neither a number for the boot nor namespaces: there, a process number alone tells.
 */
export const systemProcesses: ProcessTable = {
  self: () => ({
    host: hostname(),
    boot: onLinux ? quietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) : '',
    namespace: onLinux ? quietly(() => readlinkSync('/proc/self/ns/pid')) : '',
    pid: process.pid,
    started: startTime('self'),
  }),
  started: (pid) => {
    try {
      process.kill(pid, 0);
    } catch (error) {
      if (errorCode(error) === 'ESRCH') return undefined;
    }
    return startTime(pid === process.pid ? 'self' : String(pid));
  },
  claim: async (directory) => {
    const place = onLinux ? quietly(() => statSync(directory, { bigint: true })) : null;
    if (place === null) return undefined;
    const server = createServer((socket) => socket.destroy()).unref();
    try {
      server.listen({ path: `\0cairn-${place.dev}-${place.ino}` });
      await once(server, 'listening');
    } catch (error) {
      // Other errors: sockets are denied.
      return errorCode(error) === 'EADDRINUSE' ? { granted: false, release: () => Promise.resolve() } : undefined;
    }
    return { granted: true, release: () => new Promise((resolve) => server.close(() => resolve())) };
  },
};

/** The 22nd field of `/proc/<pid>/stat`; the second may contain spaces, but ends at the last parenthesis. */
function startTime(pid: string): string | null {
  return quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ')[19] ?? null);
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
