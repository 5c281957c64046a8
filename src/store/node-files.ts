import { constants, existsSync, readdir, statSync, write } from 'node:fs';
import { type FileHandle, link, mkdir, open, rename, statfs, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { errorCode, type Files, type OpenFile, type OpenMode } from './files.ts';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants;

const writeTo = promisify(write);
/** That of `fs/promises` ends a locked-down process of Node.js 22 where it is denied, instead of rejecting. */
const listDirectory = promisify(readdir);

/** On Linux one write-through call replaces a write and a datasync; elsewhere O_DSYNC is absent or promises less. */
const O_DSYNC = process.platform === 'linux' ? constants.O_DSYNC : 0;

/** Node's own recursive mkdir never ends where a file system says ENOENT below a directory that is there: in /proc. */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, 0o700);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return;
    const parent = dirname(path);
    if (errorCode(error) !== 'ENOENT' || existsSync(parent)) throw error;
    await makeDirectory(parent);
    await mkdir(path, 0o700);
  }
}

/**
 * The files of a real directory. Syncs go through `FileHandle`, the one way that the permission model leaves open;
 * where it denies syncs altogether, every file is opened with O_SYNC instead.
 */
export class NodeFiles implements Files {
  readonly directory: string;
  syncsDirectories = true;
  /** Kept open, so that a lack of descriptors never stands between a rename and its sync. */
  #handle: FileHandle | undefined;
  /** To whom files are given that root makes: else the server, another user, could not read them. */
  #owner: { readonly uid: number; readonly gid: number } | undefined;

  constructor(directory: string) {
    // Once: the process may go elsewhere.
    this.directory = resolve(directory);
  }

  async prepare(): Promise<void> {
    await makeDirectory(this.directory);
    // Windows cannot open a directory; its file systems keep the order of directory operations in their own log.
    if (process.platform === 'win32') return;
    this.#handle ??= await open(this.directory, O_RDONLY | O_DIRECTORY);
    if (process.getuid?.() === 0) {
      const owner = await this.#handle.stat();
      if (owner.uid !== 0) this.#owner = owner;
    }
    try {
      await this.#handle.sync();
    } catch (error) {
      if (errorCode(error) !== 'ERR_ACCESS_DENIED') throw error;
      this.syncsDirectories = false;
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }

  list(): Promise<string[]> {
    return listDirectory(this.directory).catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    });
  }

  async open(name: string, mode: OpenMode): Promise<OpenFile> {
    const through = this.syncsDirectories ? (mode === 'journal' ? O_DSYNC : 0) : constants.O_SYNC;
    const exclusive = mode === 'replace' ? O_TRUNC : O_EXCL;
    // A pipe that is read would hold up the open until somebody writes to it. Through a link, another user would have
    // root copy or overwrite any file, and give it away.
    const follow = mode === 'read' && this.#owner === undefined ? 0 : O_NOFOLLOW;
    const flags = (mode === 'read' ? O_RDONLY | O_NONBLOCK : O_WRONLY | O_CREAT | exclusive | through) | follow;
    const path = join(this.directory, name);
    const handle = await open(path, flags, 0o600);
    if (mode === 'read' && !(await handle.stat()).isFile()) {
      await handle.close();
      throw Object.assign(new Error(`Cannot read ${path}: it is not a file`), { code: 'EINVAL', syscall: 'open' });
    }
    if (this.#owner !== undefined && mode !== 'read') {
      // Denied where the directory is another machine's, or by the permission model: then root keeps them.
      await handle.chown(this.#owner.uid, this.#owner.gid).catch(() => undefined);
    }
    return {
      read: async (buffer, position) => (await handle.read(buffer, 0, buffer.length, position)).bytesRead,
      // The handle's own `write` does the same through a few more promises, which a lone caller waits for.
      write: async (bytes, position) => (await writeTo(handle.fd, bytes, 0, bytes.length, position)).bytesWritten,
      truncate: async (size) => {
        await handle.truncate(size);
        // Writing through covers no truncation. Where syncs are denied, the next write takes it along.
        if (this.syncsDirectories) await handle.sync();
      },
      sync: () => (through === 0 ? handle.datasync() : Promise.resolve()),
      close: () => handle.close(),
    };
  }

  async rename(from: string, to: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await rename(join(this.directory, from), join(this.directory, to));
        return;
      } catch (error) {
        // Windows: a virus scanner or an indexer may hold the file for a moment.
        if (process.platform !== 'win32' || errorCode(error) !== 'EPERM' || attempt === 10) throw error;
        await new Promise((resolve) => setTimeout(resolve, attempt * 10));
      }
    }
  }

  async renameNew(from: string, to: string): Promise<void> {
    try {
      await link(join(this.directory, from), join(this.directory, to));
    } catch (error) {
      // Some file systems have no links: there, whoever comes between these two calls is not seen.
      if (this.identity(to) !== undefined) throw error;
      return this.rename(from, to);
    }
    // A name that stays is a temporary one, which the next start removes.
    await this.remove(from).catch(() => undefined);
  }

  remove(name: string): Promise<void> {
    return unlink(join(this.directory, name));
  }

  async syncDirectory(): Promise<void> {
    if (this.syncsDirectories) await this.#handle?.sync();
  }

  async free(): Promise<number> {
    const { blocks, bavail, bsize } = await statfs(this.directory);
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
  }

  identity(name: string): string | undefined {
    const stats = statSync(join(this.directory, name), { throwIfNoEntry: false });
    // An inode number may be given to the next file, which is younger. Not every file system keeps the time of birth.
    return stats && `${stats.ino}-${stats.birthtimeMs || stats.mtimeMs}`;
  }
}
