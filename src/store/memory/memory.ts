import { CairnError } from '../../base/errors.ts';
import type { Tables } from './table.ts';

/** Refuses a write because the memory has no room, although the disk may have it. */
export class MemoryFullError extends CairnError {}

/** Below this share of the bound the memory has room, although perhaps not for every write. */
const roomShare = 0.95;

/**
 * The memory that the records take. It is counted (`estimateSize`) and not measured, because until a
 * garbage collection much of the heap in use may be garbage.
 */
export class Memory {
  /** From a refusal where there is little room until there is clearly room again. */
  isFull = false;
  /** The memory of the published records. */
  #published = 0;
  readonly bytesMax: number;
  readonly #tables: Tables;
  readonly #onNotice: (notice: string, level?: 'error') => void;

  /** `onNotice` takes a sentence for the operator when `isFull` changes. */
  constructor(
    tables: Tables,
    bytesMax: number,
    onNotice: (notice: string, level?: 'error') => void,
  ) {
    this.#tables = tables;
    this.bytesMax = bytesMax;
    this.#onNotice = onNotice;
  }

  /** The memory of the records, with the changes of the batch. */
  get bytes(): number {
    return this.#tables.bytes;
  }

  /** Checks a transaction that grows, when it has been run. @throws MemoryFullError */
  check(): void {
    const { bytes, bytesMax } = this;
    if (bytes <= bytesMax) return;
    this.#note(this.#published > bytesMax * roomShare);
    throw new MemoryFullError(
      'storage_full',
      `Cannot write: the records would take ${bytes} bytes of memory, and may take ${bytesMax}: remove ` +
        'records, or raise --memory-max, or --max-old-space-size of Node.js',
    );
  }

  /** Called when records have come or gone. */
  changed(): void {
    this.#published = this.bytes;
    this.#note(this.#published > this.bytesMax * (this.isFull ? roomShare : 1));
  }

  #note(isFull: boolean): void {
    if (isFull === this.isFull) return;
    this.isFull = isFull;
    if (!isFull) return this.#onNotice('there is room in memory again: all writes are accepted');
    const notice = `the records fill the ${this.bytesMax} bytes of memory that they may take`;
    this.#onNotice(`${notice}: only removals are accepted`, 'error');
  }
}
