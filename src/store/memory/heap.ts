import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks';
import { limits } from '../../base/limits.ts';

/** The memory of the records. */
export interface Heap {
  /** Whether the records may take no more memory. */
  readonly isFull: boolean;
  /** Begins and ends to measure, where it is measured. */
  start?(): void;
  stop?(): void;
}

/**
 * V8 counts the room for new objects as part of the heap limit. Versions of V8 differ in
 * its size.
 */
const newObjectsBytes = 192 * 1024 * 1024;

/** Share of the bound below which a heap that was full has room again. */
const releaseShare = 0.95;

/**
 * Measures how much of V8's heap is in use after each full garbage collection. Before
 * one, much of it may be garbage. V8 collects again at the latest when half of the rest
 * is used up, so the watch finds the heap to be full before it is.
 */
export class HeapWatch implements Heap {
  isFull = false;
  readonly #onNotice: (notice: string, level?: 'error') => void;
  readonly #observer = new PerformanceObserver((list) => {
    if (list.getEntries().some(isFullCollection)) void this.#measure();
  });

  /** `onNotice` takes a sentence for the operator when `isFull` changes. */
  constructor(onNotice: (notice: string, level?: 'error') => void) {
    this.#onNotice = onNotice;
  }

  start(): void {
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#observer.disconnect();
  }

  async #measure(): Promise<void> {
    // Imported late, so that no start waits for this module.
    const { getHeapStatistics } = await import('node:v8');
    const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics();
    const bound = Math.max(limit - newObjectsBytes, limit / 2) * limits.heapShareMax;
    const isFull = used > (this.isFull ? bound * releaseShare : bound);
    if (isFull === this.isFull) return;
    this.isFull = isFull;
    if (!isFull) return this.#onNotice('there is room in memory again: all writes are accepted');
    const notice = 'the records fill the memory of this process: only removals are accepted';
    this.#onNotice(notice, 'error');
  }
}

function isFullCollection(entry: PerformanceEntry): boolean {
  const detail = 'detail' in entry ? entry.detail : undefined;
  return (
    typeof detail === 'object' &&
    detail !== null &&
    'kind' in detail &&
    detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR
  );
}
