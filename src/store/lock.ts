import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { JsonObject } from '../base/json.ts';
import type { Random } from '../base/random.ts';
import { LockedError } from './failures.ts';
import { errorCode, type Files, readWhole, writeAll } from './files.ts';
import { parseObject } from './journal-format.ts';

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
  readonly #identity: string | undefined;
  readonly #claim: Claim | undefined;

  private constructor(files: Files, identity: string | undefined, claim: Claim | undefined) {
    this.#files = files;
    this.#identity = identity;
    this.#claim = claim;
  }

  /** @throws LockedError naming the holder */
  static async acquire(options: {
    readonly files: Files;
    readonly clock: Clock;
    readonly random: Random;
    readonly processes: ProcessTable;
  }): Promise<Lock> {
    const { files, clock, random, processes } = options;
    const claim = await processes.claim(files.directory);
    const self = processes.self();
    const token = random(16).toString('hex');
    const content = `${JSON.stringify({ ...self, since: new Date(clock.now()).toISOString(), token })}\n`;
    try {
      if (claim?.granted === false) throw await heldBy(files, 'it is running on this machine');
      for (let attempt = 1; attempt <= 10; attempt += 1) {
        const identity = await create(files, content);
        if (identity !== undefined) return new Lock(files, identity, claim);
        await removeStale(files, processes, self, claim?.granted === true);
      }
      throw await heldBy(files, 'others are taking it at this moment');
    } catch (error) {
      await claim?.release();
      throw error;
    }
  }

  /** Whether the lock file is still the one that we made. */
  held(): boolean {
    return this.#identity !== undefined && this.#files.identity(lockName) === this.#identity;
  }

  async release(): Promise<void> {
    if (this.held()) await this.#files.remove(lockName).catch(() => undefined);
    await this.#claim?.release();
  }
}

/** Makes the lock file and returns its identity; `undefined` where there is one already. */
async function create(files: Files, content: string): Promise<string | undefined> {
  try {
    const file = await files.open(lockName, 'exclusive');
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
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return undefined;
    throw error;
  }
  const identity = files.identity(lockName);
  return (await readWhole(files, lockName))?.toString() === content ? identity : undefined;
}

/** Removes a lock whose holder is gone. @throws LockedError where that cannot be shown */
async function removeStale(
  files: Files,
  processes: ProcessTable,
  self: ProcessIdentity,
  claimed: boolean,
): Promise<void> {
  const text = (await readWhole(files, lockName))?.toString();
  if (text === undefined) return;
  const doubt = presence(parseObject(text), processes, self, claimed);
  if (doubt !== undefined) throw await heldBy(files, doubt);
  await files.remove(lockName).catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') throw error;
  });
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
  if (host !== self.host) return 'it runs on another machine, or in another container';
  const known = typeof boot === 'string' && typeof namespace === 'string' && self.boot !== null;
  if (!known && !claimed) return 'without reading /proc it cannot be told whether it is gone';
  if (known && boot !== self.boot) return undefined;
  if (known && namespace !== self.namespace) return 'it runs in another container';
  const now = typeof pid === 'number' ? processes.started(pid) : undefined;
  if (now === undefined || (now !== null && typeof started === 'string' && now !== started)) return undefined;
  return 'it is running';
}

async function heldBy(files: Files, reason: string): Promise<LockedError> {
  const holder = parseObject((await readWhole(files, lockName))?.toString() ?? '');
  const who = holder
    ? `process ${String(holder['pid'])} on ${String(holder['host'])} since ${String(holder['since'])}`
    : 'another process';
  return new LockedError(
    `Cannot open the store: ${who} holds it (${reason}). If that process is gone, remove the file ` +
      `"${lockName}" in ${files.directory}`,
  );
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
    return startTime(String(pid));
  },
  claim: async (directory) => {
    if (!onLinux) return undefined;
    const place = quietly(() => statSync(directory, { bigint: true }));
    if (place === null) return undefined;
    const server = createServer((socket) => socket.destroy());
    const granted = await listen(server, `\0cairn-${place.dev}-${place.ino}`);
    if (granted === undefined) return undefined;
    server.unref();
    return {
      granted,
      release: () => new Promise((resolve) => (granted ? server.close(() => resolve()) : resolve())),
    };
  },
};

/** True when the address is ours, false when another has it, `undefined` when sockets are denied. */
function listen(server: Server, path: string): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    server.once('error', (error) => resolve(errorCode(error) === 'EADDRINUSE' ? false : undefined));
    server.listen({ path }, () => resolve(true));
  });
}

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
