import { constants, existsSync, lstatSync, readdir, statSync, write } from 'node:fs';
import { type FileHandle, mkdir, open, rename, statfs, unlink } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { FatalError } from '../../base/errors.ts';
import { timers } from '../../base/system.ts';
import { errorCode, type Files, type OpenFile, type OpenMode } from './files.ts';

const {
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
  O_SYNC,
  O_TRUNC,
  O_WRONLY,
} = constants;

const isWindows = process.platform === 'win32';

/**
 * On Linux, one write-through call replaces a write and a datasync. Elsewhere O_DSYNC is absent or
 * promises less.
 */
const O_DSYNC = process.platform === 'linux' ? constants.O_DSYNC : 0;

const writeTo = promisify(write);
/** The function of `fs/promises` crashes Node.js 22 if the permission model denies it. */
const listDirectory = promisify(readdir);

/**
 * Creates a directory, and syncs its name. Its parent must exist, so that a mistyped path creates
 * nothing.
 */
async function makeDirectory(path: string): Promise<void> {
  const parent = dirname(path);
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = errorCode(error);
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || existsSync(parent)) throw error;
    throw new FatalError(64, `Cannot make ${path}: there is no directory ${parent}; make it first`);
  }
  await syncName(parent);
}

/** Does nothing if Node.js or the system does not allow it. */
async function syncName(directory: string): Promise<void> {
  const handle = await open(directory, O_RDONLY).catch(() => undefined);
  try {
    await handle?.sync();
  } catch (error) {
    if (errorCode(error) !== 'ERR_ACCESS_DENIED') throw error;
  } finally {
    await handle?.close();
  }
}

/**
 * The files of a real directory. Syncs go through `FileHandle`, as the permission model allows no
 * other way. If it denies syncs altogether, every file is opened with O_SYNC.
 */
export class NodeFiles implements Files {
  readonly directory: string;
  syncsDirectories = true;
  /** The directory and a separator, so that checks of the lock need not normalise paths. */
  readonly #prefix: string;
  /** Kept open, so that a lack of descriptors cannot prevent the sync after a rename. */
  #handle: FileHandle | undefined;
  /** If syncs are denied: a file whose writes also make changes of the directory durable. */
  #barrier: FileHandle | undefined;

  constructor(directory: string) {
    // Resolved once, because the process may change its working directory.
    this.directory = resolve(directory);
    this.#prefix = join(this.directory, sep);
  }

  async prepare(): Promise<void> {
    await makeDirectory(this.directory);
    // Windows cannot open a directory. Its file systems log directory operations in order.
    if (isWindows) return;
    this.#handle ??= await open(this.directory, O_RDONLY | O_DIRECTORY);
    const { uid } = await this.#handle.stat();
    if (uid !== 0 && process.getuid?.() === 0) {
      throw new FatalError(
        74,
        `Cannot use ${this.directory} as root: it belongs to another user, ` +
          `who could not read what root writes; run the same command by sudo -u '#${uid}'`,
      );
    }
    try {
      await this.#handle.sync();
    } catch (error) {
      if (errorCode(error) !== 'ERR_ACCESS_DENIED') throw error;
      this.syncsDirectories = false;
      const flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_SYNC;
      this.#barrier = await open(this.#prefix + '.sync', flags, 0o600);
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    await this.#barrier?.close();
    this.#handle = this.#barrier = undefined;
  }

  async list(): Promise<string[]> {
    try {
      return await listDirectory(this.directory);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  async open(name: string, mode: OpenMode): Promise<OpenFile> {
    const path = this.#prefix + name;
    const throughIfSynced = mode === 'journal' ? O_DSYNC : 0;
    const through = this.syncsDirectories ? throughIfSynced : O_SYNC;
    const making = mode === 'rewrite' ? 0 : O_CREAT | (mode === 'replace' ? O_TRUNC : O_EXCL);
    // Opening a pipe to read it would wait for a writer.
    const flags =
      mode === 'read' ? O_RDONLY | O_NONBLOCK : O_WRONLY | O_NOFOLLOW | making | through;
    const handle = await open(path, flags, 0o600).catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT') throw error;
      if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) throw error;
      throw new FatalError(74, `Cannot read ${path}: it is a broken link: remove it`);
    });
    const stats = await handle.stat({ bigint: true });
    if (mode === 'read' && !stats.isFile()) {
      await handle.close();
      throw new FatalError(74, `Cannot read ${path}: it is not a file`);
    }
    return {
      identity: String(stats.ino),
      async read(buffer, position) {
        return (await handle.read(buffer, 0, buffer.length, position)).bytesRead;
      },
      async write(bytes, position) {
        // The handle's method takes a few more promises, for which a lone writer would wait.
        return (await writeTo(handle.fd, bytes, 0, bytes.length, position)).bytesWritten;
      },
      truncate: async (size) => {
        await handle.truncate(size);
        // A truncation is not written through. If syncs are denied, the next write covers it.
        if (this.syncsDirectories) await handle.sync();
      },
      sync: () => (through === 0 ? handle.datasync() : Promise.resolve()),
      close: () => handle.close(),
    };
  }

  async rename(from: string, to: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await rename(this.#prefix + from, this.#prefix + to);
      } catch (error) {
        // On Windows, a virus scanner or an indexer may hold the file for a moment.
        if (!isWindows || errorCode(error) !== 'EPERM' || attempt === 10) throw error;
        await timers.sleep(attempt * 10);
      }
    }
  }

  remove(name: string): Promise<void> {
    return unlink(this.#prefix + name);
  }

  async syncDirectory(): Promise<void> {
    await (this.syncsDirectories ? this.#handle?.sync() : this.#barrier?.write('.', 0));
  }

  async free(): Promise<number> {
    const { blocks, bavail, bsize } = await statfs(this.directory);
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
  }

  identity(name: string): string | undefined {
    const options = { bigint: true, throwIfNoEntry: false } as const;
    return statSync(this.#prefix + name, options)?.ino.toString();
  }
}
