/**
 * The one port through which the store touches files, so that a test can fail, tear, reorder and record every
 * operation. It is rooted in one directory and knows plain names only.
 */
export interface Files {
  /** The directory, for messages to the operator. */
  readonly directory: string;
  /** False where directories cannot be synced (Node 26 under the permission model); known after `prepare`. */
  readonly syncsDirectories: boolean;
  /** Comes first: makes the directory where it is absent (0700) and finds out what may be done in it. */
  prepare(): Promise<void>;
  /** Comes last. */
  close(): Promise<void>;
  /** The names in the directory, in no order; none where it is absent. */
  list(): Promise<string[]>;
  /** Rejects with `code` ENOENT (`read`) or EEXIST (`exclusive`, `journal`) among others. New files have mode 0600. */
  open(name: string, mode: OpenMode): Promise<OpenFile>;
  rename(from: string, to: string): Promise<void>;
  /** Rejects where there is a file under the new name, as far as the file system can tell. */
  renameNew(from: string, to: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Makes earlier creations, renames and removals durable. */
  syncDirectory(): Promise<void>;
  /** How many bytes are free, where that is known; else `Infinity`. */
  free(): Promise<number>;
  /** Tells one file from all others that are there; `undefined` where there is none. Synchronous, for the fence. */
  identity(name: string): string | undefined;
}

/**
 * `replace` makes the file or empties it; `exclusive` makes it and fails where it exists; `journal` is that for a
 * file whose every write is followed by a sync, so that an implementation may do both in one call.
 */
export type OpenMode = 'read' | 'replace' | 'exclusive' | 'journal';

export interface OpenFile {
  /** Bytes read into `buffer`, at most its length; 0 at the end of the file. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** Bytes written, which may be fewer than given. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Cuts off what is beyond, durably. */
  truncate(size: number): Promise<void>;
  /** The same as `Files.identity` of its name, which may be another file's by now. */
  identity(): Promise<string>;
  /** Makes earlier writes durable. Never to be called again on a file after it has failed. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The system's code of a failed call, such as ENOSPC. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

const fullCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EMFILE', 'ENFILE']);

/** Whether a call failed because something ran out that may come back: space, quota, descriptors. */
export function isExhausted(error: unknown): boolean {
  return fullCodes.has(errorCode(error) ?? '');
}

/** Writes all of `bytes`, however few the system takes at a time. Does not sync. */
export async function writeAll(file: OpenFile, bytes: Uint8Array, position: number): Promise<void> {
  let written = await file.write(bytes, position);
  while (written < bytes.length) {
    const more = await file.write(bytes.subarray(written), position + written);
    if (more === 0) throw Object.assign(new Error('Cannot write: the system takes no more bytes'), { code: 'ENOSPC' });
    written += more;
  }
}

/** The whole of a file; `undefined` where it is absent. For small files. */
export async function readWhole(files: Files, name: string): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  try {
    for await (const part of readChunks(files, name)) parts.push(Buffer.from(part));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  return Buffer.concat(parts);
}

/** A file in pieces of at most 256 KiB; each is good until the next is asked for. */
export async function* readChunks(files: Files, name: string): AsyncGenerator<Buffer, void, undefined> {
  const file = await files.open(name, 'read');
  try {
    const buffer = Buffer.allocUnsafe(256 * 1024);
    let position = 0;
    for (;;) {
      const length = await file.read(buffer, position);
      if (length === 0) return;
      yield buffer.subarray(0, length);
      position += length;
    }
  } finally {
    await file.close();
  }
}

/** The name under which a file is written before it takes the place of `name`. */
export function temporaryName(name: string): string {
  return `${name}.tmp`;
}

/**
 * Puts `bytes` in the place of whatever stands under `name`: temporary file, sync, rename, sync of the directory. After
 * a crash the file is the old one or the new one. The mode is 0600.
 */
export async function replaceFile(files: Files, name: string, bytes: Uint8Array): Promise<void> {
  await writeSynced(files, temporaryName(name), 'replace', (file) => writeAll(file, bytes, 0));
  await files.rename(temporaryName(name), name);
  await files.syncDirectory();
}

/** Makes a file, writes and syncs it, and removes it when that fails. */
export async function writeSynced(
  files: Files,
  name: string,
  mode: 'replace' | 'exclusive',
  write: (file: OpenFile) => Promise<void>,
): Promise<void> {
  const file = await files.open(name, mode);
  try {
    await write(file).then(() => file.sync()).finally(() => file.close());
  } catch (error) {
    await files.remove(name).catch(() => undefined);
    throw error;
  }
}
