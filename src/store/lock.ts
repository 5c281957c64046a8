import { once } from 'node:events';
import { readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import type { JsonObject } from '../base/json.ts';
import type { Clock, Random } from '../base/system.ts';
import { errorCode, readWhole, writeAll, writeSynced, type Files } from './files.ts';
import { parseObject } from './journal-format.ts';
import { LockedError } from './store.ts';

/** What can be known of a process; null where the system does not tell. */
export interface ProcessIdentity {
  readonly host: string;
  /** Tells machines of the same name apart, where they may share a directory. */
  readonly machine: string | null;
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
  /** `directory`: the one that is to be locked. */
  self(directory: string): ProcessIdentity;
  /** Of a process in our own namespace: when it began (null where that is hidden); `undefined` when it is gone. */
  started(pid: number): string | null | undefined;
  /**
   * Takes a name that only one process at a time can have, until it ends or calls what is returned. False where another
   * one has it, `undefined` where there is no such thing.
   */
  claim(directory: string): Promise<Release | false | undefined>;
}

type Release = () => Promise<void>;

export interface LockOptions {
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  readonly processes: ProcessTable;
}

export const lockName = 'lock';

const onLinux = process.platform === 'linux';

/**
 * Opens the directory for one process alone, until that releases it. The lock is a file that names its holder; on
 * Linux a socket of the abstract namespace, which goes with its process, stands beside it. A lock is taken over only
 * from a holder that is provably gone: this very machine was started anew, or no process of the same namespace has
 * that number and start time.
 *
 * Two processes that take the same stale lock over at once may both remove it; then the file is the second one's, and
 * the first finds at its next fence that it has lost it.
 * @throws LockedError naming the holder
 */
export async function acquireLock({ files, clock, random, processes }: LockOptions) {
  let unclaim: Release | false | undefined;
  try {
    await files.prepare();
    unclaim = await processes.claim(files.directory);
    if (unclaim === false) throw await heldBy(files, 'it is running on this machine');
    const self = processes.self(files.directory);
    const since = new Date(clock.now()).toISOString();
    const content = `${JSON.stringify({ ...self, since, token: random(16).toString('hex') })}\n`;
    let identity = await create(files, content);
    if (identity === undefined) {
      const stale = await readWhole(files, lockName);
      const doubt = stale && presence(parseObject(stale.toString()), processes, self, unclaim !== undefined);
      if (doubt !== undefined) throw await heldBy(files, doubt);
      // Where it has gone by itself, another one may be there by now.
      if (stale !== undefined) await files.remove(lockName).catch(unlessGone);
      identity = await create(files, content);
    }
    if (identity === undefined) throw await heldBy(files, 'others are taking it at this moment');
    /** Whether the file is still the one that we made. */
    const held = (): boolean => files.identity(lockName) === identity;
    const release = async (): Promise<void> => {
      if (held()) await files.remove(lockName).catch(() => undefined);
      if (unclaim) await unclaim();
      await files.close();
    };
    return { held, release };
  } catch (error) {
    if (unclaim) await unclaim();
    await files.close();
    throw error;
  }
}

export type Lock = Awaited<ReturnType<typeof acquireLock>>;

function unlessGone(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error;
}

/** Makes the lock file and returns its identity; `undefined` where there is one already. */
async function create(files: Files, content: string): Promise<string | undefined> {
  try {
    // Synced: an empty lock after a power cut would name nobody, and so could not be shown to be stale.
    await writeSynced(files, lockName, 'exclusive', (file) => writeAll(file, Buffer.from(content), 0));
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return undefined;
    throw error;
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
  const { host, machine, boot, namespace, pid, started } = holder;
  if (host !== self.host) return 'it is on another machine, or in another container';
  const known = typeof boot === 'string' && typeof namespace === 'string' && self.boot !== null;
  if (!known && !claimed) return 'without reading /proc it cannot be told whether it is gone';
  if (known && boot !== self.boot) {
    return machine === (self.machine ?? '') ? undefined : 'it cannot be told whether it was on this machine';
  }
  if (known && namespace !== self.namespace) return 'it is in another container';
  const now = typeof pid === 'number' ? processes.started(pid) : undefined;
  if (now === undefined || (now !== null && typeof started === 'string' && now !== started)) return undefined;
  return now === started ? 'it is running' : 'a process has its number, and when that one began is not shown';
}

async function heldBy(files: Files, reason: string): Promise<LockedError> {
  const content = await readWhole(files, lockName);
  const holder = parseObject(content?.toString() ?? '');
  const who = holder
    ? `process ${String(holder['pid'])} on ${String(holder['host'])} since ${String(holder['since'])}`
    : 'another process';
  let remedy = `. If that process is gone, remove the file "${lockName}" in ${files.directory}`;
  if (reason.startsWith('it is running')) remedy = ': stop it first';
  // Any process of the machine may take a name of the abstract namespace.
  if (content === undefined) remedy = '. No lock file is there: if that stays so, "ss -xlp" shows who has "@cairn-…"';
  return new LockedError(`Cannot open the store: ${who} holds it (${reason})${remedy}`);
}

/**
 * The machine's own processes. What `/proc` does not show under the permission model is null. Other systems than Linux
 * have neither a number for the boot nor namespaces: there, a process number alone tells.
 */
export const systemProcesses: ProcessTable = {
  self: (directory) => ({
    host: hostname(),
    machine: quietly(() => machineOf(directory)),
    boot: onLinux ? quietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) : '',
    namespace: onLinux ? quietly(() => readlinkSync('/proc/self/ns/pid')) : '',
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
  claim: async (directory) => {
    const place = onLinux ? quietly(() => statSync(directory, { bigint: true })) : null;
    if (place === null) return undefined;
    const server = createServer((socket) => socket.destroy()).unref();
    try {
      // Node 20 fills the address with zeros by itself, and to Linux that is another name.
      server.listen({ path: `\0cairn-${place.dev}-${place.ino}`.padEnd(108, '\0') });
      await once(server, 'listening');
    } catch (error) {
      // Other errors: sockets are denied.
      return errorCode(error) === 'EADDRINUSE' ? false : undefined;
    }
    return () => new Promise((resolve) => server.close(() => resolve()));
  },
};

/** The fields of `/proc/<pid>/stat` from the third on; the second may contain spaces, and ends in a parenthesis. */
function statusOf(pid: string): readonly string[] | null {
  return quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? null);
}

/** The kinds of `statfs` that one machine at a time has: ext, XFS, Btrfs, F2FS, ZFS, overlay, tmpfs. */
const localKinds = [0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x794c7630, 0x01021994];

/** Many containers have no number of their machine; where the disk is a local one, it does as well. */
function machineOf(directory: string): string | null {
  const id = quietly(() => /^[0-9a-f]{32}$/m.exec(readFileSync('/etc/machine-id', 'latin1'))?.[0] ?? null);
  return id ?? (localKinds.includes(statfsSync(directory).type) ? 'local' : null);
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
