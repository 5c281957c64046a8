import { CairnError } from '../../base/errors.ts';
import type { Tables } from './table.ts';

/** Refuses a write because memory is full, although the disk may have room. */
export class MemoryFullError extends CairnError {}

/**
 * Below this share of the bound the memory counts as having room, even if a large write may not
 * fit.
 */
const roomShare = 0.95;

/**
 * The memory of the records. It is counted (`estimateSize`), not measured, because until a garbage
 * collection much of the heap in use may be garbage.
 */
export class Memory {
  /** True from a refusal with little room left until there is clearly room again. */
  isFull = false;
  #published = 0;
  readonly bytesMax: number;
  readonly #tables: Tables;
  readonly #onNotice: (notice: string, level?: 'error') => void;

  constructor(
    tables: Tables,
    bytesMax: number,
    onNotice: (notice: string, level?: 'error') => void,
  ) {
    this.#tables = tables;
    this.bytesMax = bytesMax;
    this.#onNotice = onNotice;
  }

  get bytes(): number {
    return this.#tables.bytes;
  }

  /** @throws MemoryFullError after the run of a transaction that grows */
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
