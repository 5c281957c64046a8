import type { Files, OpenFile, OpenMode } from '../../../src/store/disk/files.ts';

interface Inode {
  bytes: Buffer;
}

/** What was done to the disk, in order. A `sync` makes durable what was done before to its file or to the directory. */
export type Operation =
  | { readonly kind: 'write'; readonly inode: number; readonly position: number; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly inode: number; readonly size: number }
  | { readonly kind: 'sync'; readonly inode: number }
  /** A sync that failed: what it did not make durable, no later one does, for the system takes it for written. */
  | { readonly kind: 'failedSync'; readonly inode: number }
  | { readonly kind: 'create'; readonly name: string; readonly inode: number }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string; readonly inode: number }
  | { readonly kind: 'remove'; readonly name: string }
  | { readonly kind: 'syncDirectory' };

const operations = [
  ...(['list', 'open', 'read', 'write', 'truncate', 'sync', 'close', 'rename', 'remove', 'syncDirectory'] as const),
];

export interface Call {
  readonly operation: (typeof operations)[number];
  readonly name: string;
}

/** What a call meets: an error after `written` bytes (0 when left out), or a write of only `written` bytes. */
export interface Fault {
  readonly code?: string;
  readonly written?: number;
}

/** A directory in memory that records every operation, and where calls can be made to fail. */
export class SimulatedDisk implements Files {
  readonly directory = 'simulated';
  /** Where it is false, every write is synced, and takes along what was done to the directory before. */
  readonly syncsDirectories: boolean;
  readonly operations: Operation[] = [];
  /** Whether a journal's writes are durable without a sync, as on Linux. */
  readonly writesThrough: boolean;
  fault: (call: Call) => Fault | undefined = () => undefined;
  /** Where a process may be frozen for a while: before a write, and after it. */
  pause: (at: 'write' | 'written', name: string) => Promise<void> | undefined = () => undefined;
  /** Bytes that fit; writes beyond are short, then fail with ENOSPC. */
  capacity = Number.POSITIVE_INFINITY;
  /** What it says is free. */
  unused = Number.POSITIVE_INFINITY;
  readonly #inodes = new Map<number, Inode>();
  readonly #names = new Map<string, number>();
  #lastInode = 0;

  constructor(content: ReadonlyMap<string, Uint8Array> = new Map(), writesThrough = true, syncsDirectories = true) {
    this.writesThrough = writesThrough;
    this.syncsDirectories = syncsDirectories;
    for (const [name, bytes] of content) {
      const inode = this.#newInode(Buffer.from(bytes));
      this.#names.set(name, inode);
      this.operations.push({ kind: 'create', name, inode });
      this.operations.push({ kind: 'write', inode, position: 0, bytes: Buffer.from(bytes) });
      this.operations.push({ kind: 'sync', inode });
    }
    this.operations.push({ kind: 'syncDirectory' });
  }

  /** The files by name, as a process that runs now sees them. */
  content(): Map<string, Buffer> {
    const content = new Map<string, Buffer>();
    for (const [name, inode] of this.#names) content.set(name, Buffer.from(this.#inode(inode).bytes));
    return content;
  }

  async prepare(): Promise<void> {}

  async close(): Promise<void> {}

  async list(): Promise<string[]> {
    this.#meet({ operation: 'list', name: '' });
    return [...this.#names.keys()];
  }

  async open(name: string, mode: OpenMode): Promise<OpenFile> {
    this.#meet({ operation: 'open', name });
    let inode = this.#names.get(name);
    if ((mode === 'read' || mode === 'rewrite') && inode === undefined) throw failure('ENOENT');
    if ((mode === 'exclusive' || mode === 'journal') && inode !== undefined) throw failure('EEXIST');
    if (inode === undefined) {
      inode = this.#newInode(Buffer.alloc(0));
      this.#names.set(name, inode);
      this.operations.push({ kind: 'create', name, inode });
    } else if (mode !== 'read' && mode !== 'rewrite') {
      this.#truncate(inode, 0);
    }
    return this.#handle(name, inode, mode);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#meet({ operation: 'rename', name: from });
    const inode = this.#names.get(from);
    if (inode === undefined) throw failure('ENOENT');
    this.#names.delete(from);
    this.#names.set(to, inode);
    this.operations.push({ kind: 'rename', from, to, inode });
  }

  async remove(name: string): Promise<void> {
    this.#meet({ operation: 'remove', name });
    if (!this.#names.delete(name)) throw failure('ENOENT');
    this.operations.push({ kind: 'remove', name });
  }

  async syncDirectory(): Promise<void> {
    this.#meet({ operation: 'syncDirectory', name: '' });
    this.operations.push({ kind: 'syncDirectory' });
  }

  async free(): Promise<number> {
    return this.unused;
  }

  identity(name: string): string | undefined {
    const inode = this.#names.get(name);
    return inode === undefined ? undefined : String(inode);
  }


  #handle(name: string, inode: number, mode: OpenMode): OpenFile {
    const file = this.#inode(inode);
    return {
      identity: String(inode),
      read: async (buffer, position) => {
        this.#meet({ operation: 'read', name });
        return file.bytes.copy(buffer, 0, position);
      },
      write: async (bytes, position) => {
        await this.pause('write', name);
        const fault = this.fault({ operation: 'write', name });
        const room = this.capacity - this.#used() + Math.max(0, file.bytes.length - position);
        const length = Math.max(0, Math.min(bytes.length, room, fault?.written ?? (fault?.code ? 0 : bytes.length)));
        if (length > 0) {
          const written = Buffer.from(bytes.subarray(0, length));
          file.bytes = overwrite(file.bytes, written, position);
          this.operations.push({ kind: 'write', inode, position, bytes: written });
        }
        if (fault?.code !== undefined) throw failure(fault.code);
        if (length === 0 && bytes.length > 0) throw failure('ENOSPC');
        // As with O_DSYNC: durable when the call returns.
        if (mode === 'journal' && this.writesThrough) this.operations.push({ kind: 'sync', inode });
        if (!this.syncsDirectories) this.operations.push({ kind: 'sync', inode }, { kind: 'syncDirectory' });
        await this.pause('written', name);
        return length;
      },
      truncate: async (size) => {
        this.#meet({ operation: 'truncate', name });
        this.#truncate(inode, size);
        this.operations.push({ kind: 'sync', inode });
      },
      sync: async () => {
        const code = this.fault({ operation: 'sync', name })?.code;
        if (code !== undefined) {
          this.operations.push({ kind: 'failedSync', inode });
          throw failure(code);
        }
        // As with O_DSYNC: nothing is left to do for it.
        if (mode !== 'journal' || !this.writesThrough) this.operations.push({ kind: 'sync', inode });
      },
      close: async () => {
        this.#meet({ operation: 'close', name });
      },
    };
  }

  #meet(call: Call): void {
    const code = this.fault(call)?.code;
    if (code !== undefined) throw failure(code);
  }

  #truncate(inode: number, size: number): void {
    const file = this.#inode(inode);
    file.bytes = resize(file.bytes, size);
    this.operations.push({ kind: 'truncate', inode, size });
  }

  #used(): number {
    let used = 0;
    for (const inode of this.#names.values()) used += this.#inode(inode).bytes.length;
    return used;
  }

  #newInode(bytes: Buffer): number {
    this.#lastInode += 1;
    this.#inodes.set(this.#lastInode, { bytes });
    return this.#lastInode;
  }

  #inode(number: number): Inode {
    const inode = this.#inodes.get(number);
    if (inode === undefined) throw new Error(`no inode ${number}`);
    return inode;
  }
}

/** Which operations of a prefix survive a crash: those that a sync covers always do. */
export function unsynced(operations: readonly Operation[]): number[] {
  const open: number[] = [];
  const syncedFiles = new Set<number>();
  let directorySynced = false;
  for (let index = operations.length - 1; index >= 0; index -= 1) {
    const operation = operations[index];
    if (operation === undefined) continue;
    if (operation.kind === 'sync') syncedFiles.add(operation.inode);
    else if (operation.kind === 'failedSync') syncedFiles.delete(operation.inode);
    else if (operation.kind === 'syncDirectory') directorySynced = true;
    else if (operation.kind === 'write' || operation.kind === 'truncate') {
      if (!syncedFiles.has(operation.inode)) open.unshift(index);
    } else if (!directorySynced) open.unshift(index);
  }
  return open;
}

/** How a write that no sync covers reaches the disk: only its beginning, or only its end, with zeros before it. */
export interface Tear {
  readonly index: number;
  readonly keep: 'head' | 'tail';
  readonly at: number;
}

/** What is on the disk after a crash: `operations` without the `dropped` ones, and with one write torn. */
export function afterCrash(
  operations: readonly Operation[],
  dropped: ReadonlySet<number>,
  tear?: Tear,
): Map<string, Buffer> {
  const inodes = new Map<number, Buffer>();
  const names = new Map<string, number>();
  for (const [index, operation] of operations.entries()) {
    if (dropped.has(index)) continue;
    switch (operation.kind) {
      case 'write': {
        const before = inodes.get(operation.inode) ?? Buffer.alloc(0);
        const torn = tear?.index === index ? tear : undefined;
        const head = torn?.keep === 'head' ? operation.bytes.subarray(0, torn.at) : operation.bytes;
        const skip = torn?.keep === 'tail' ? torn.at : 0;
        inodes.set(operation.inode, overwrite(before, head.subarray(skip), operation.position + skip));
        break;
      }
      case 'truncate':
        inodes.set(operation.inode, resize(inodes.get(operation.inode) ?? Buffer.alloc(0), operation.size));
        break;
      case 'create':
        names.set(operation.name, operation.inode);
        break;
      case 'rename':
        if (names.get(operation.from) === operation.inode) names.delete(operation.from);
        names.set(operation.to, operation.inode);
        break;
      case 'remove':
        names.delete(operation.name);
        break;
      default:
        break;
    }
  }
  const content = new Map<string, Buffer>();
  for (const [name, inode] of names) content.set(name, inodes.get(inode) ?? Buffer.alloc(0));
  return content;
}

/** `before` with `bytes` at `position`: in place where they fit, as a line does into the spaces ahead of it. */
function overwrite(before: Buffer, bytes: Buffer, position: number): Buffer {
  if (position + bytes.length <= before.length) {
    bytes.copy(before, position);
    return before;
  }
  const after = Buffer.alloc(position + bytes.length);
  before.copy(after);
  bytes.copy(after, position);
  return after;
}

function resize(before: Buffer, size: number): Buffer {
  const after = Buffer.alloc(size);
  before.copy(after);
  return after;
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: simulated`), { code });
}
