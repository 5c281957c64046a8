/**
 * The port through which the store reaches files. Tests replace it to fail, tear, reorder and
 * record operations. It works in one directory, with plain names only.
 */
export interface Files {
  readonly directory: string;
  /**
   * False if directories cannot be synced: Node 26 under the permission model. Set by `prepare`.
   */
  readonly syncsDirectories: boolean;
  /** Called first. Creates the directory if necessary, with mode 0700. */
  prepare(): Promise<void>;
  /** Called last, even if `prepare` has failed. */
  close(): Promise<void>;
  /** In no order; empty if the directory is absent. */
  list(): Promise<string[]>;
  /** New files have mode 0600. @throws with `code` ENOENT (`read`), EEXIST, and others */
  open(name: string, mode: OpenMode): Promise<OpenFile>;
  rename(from: string, to: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Makes earlier creations, renames and removals durable. */
  syncDirectory(): Promise<void>;
  /** `Infinity` if unknown. */
  free(): Promise<number>;
  /** Distinguishes a file from all others; `undefined` if it is absent. */
  identity(name: string): string | undefined;
}

/**
 * `replace` creates or empties the file. `exclusive` creates it, and fails if it exists. `journal`
 * also syncs after each write, so that one call may do both. `rewrite` opens an existing file.
 */
export type OpenMode = 'read' | 'replace' | 'exclusive' | 'journal' | 'rewrite';

export interface OpenFile {
  /** The identity of this file (`Files.identity`), even if another file has its name by now. */
  readonly identity: string;
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** May write fewer bytes than given, and returns their number. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Cuts the file off at `size`: durably, or with the next write if syncs are denied. */
  truncate(size: number): Promise<void>;
  /** Makes earlier writes durable. After a failure, it must not be called again on this file. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

const fullCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EMFILE', 'ENFILE']);

/** True for a lack of space, quota or descriptors, which may pass. */
export function isExhausted(error: unknown): boolean {
  return fullCodes.has(errorCode(error) ?? '');
}

/** Does not sync. */
export async function writeAll(file: OpenFile, bytes: Uint8Array, position: number): Promise<void> {
  let written = await file.write(bytes, position);
  while (written < bytes.length) {
    const more = await file.write(bytes.subarray(written), position + written);
    if (more === 0) {
      const error = new Error('Cannot write: the system accepts no more bytes');
      throw Object.assign(error, { code: 'ENOSPC' });
    }
    written += more;
  }
}

/** Only for small files; `undefined` if absent. */
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

/** Reads a file in pieces of at most 256 KiB, each valid until the next one is read. */
export async function* readChunks(files: Files, name: string): AsyncGenerator<Buffer> {
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

/** A line of a file, with its line feed if it has one. */
export interface Line {
  readonly offset: number;
  readonly bytes: Buffer;
}

export async function* readLines(files: Files, name: string): AsyncGenerator<Line> {
  let parts: Buffer[] = [];
  let offset = 0;
  for await (const chunk of readChunks(files, name)) {
    parts.push(Buffer.from(chunk));
    // A line is concatenated once, so the time grows only with its length.
    if (!chunk.includes(0x0a)) continue;
    let rest: Buffer = Buffer.concat(parts);
    for (let end = rest.indexOf(0x0a) + 1; end > 0; end = rest.indexOf(0x0a) + 1) {
      yield { offset, bytes: rest.subarray(0, end) };
      offset += end;
      rest = rest.subarray(end);
    }
    parts = [rest];
  }
  const last = Buffer.concat(parts);
  if (last.length > 0) yield { offset, bytes: last };
}

export function temporaryName(name: string): string {
  return `${name}.tmp`;
}

/**
 * Creates or replaces a file: temporary file, sync, rename, sync of the directory. After a crash it
 * is the old file or the new one. Its mode is 0600.
 */
export async function replaceFile(files: Files, name: string, bytes: Uint8Array): Promise<void> {
  const temporary = temporaryName(name);
  await writeSynced(files, temporary, 'replace', (file) => writeAll(file, bytes, 0));
  await files.rename(temporary, name);
  await files.syncDirectory();
}

export async function writeSynced(
  files: Files,
  name: string,
  mode: 'replace' | 'exclusive',
  write: (file: OpenFile) => Promise<void>,
): Promise<void> {
  const file = await files.open(name, mode);
  try {
    await write(file)
      .then(() => file.sync())
      .finally(() => file.close());
  } catch (error) {
    await files.remove(name).catch(() => undefined);
    throw error;
  }
}
