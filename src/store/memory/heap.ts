import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks';
import { limits } from '../../base/limits.ts';

/** Where the records are kept besides on the disk. */
export interface Heap {
  /** Whether the records may take no more memory. */
  readonly isFull: boolean;
}

/** V8 counts the room for new objects as part of a heap's limit; how much that is differs from version to version. */
const newObjectsBytes = 192 * 1024 * 1024;

/** Memory to which the heap has to fall, in shares of the bound, before it counts as not full again. */
const releaseShare = 0.95;

/**
 * Watches how much of V8's heap is in use after each full garbage collection: before one, much of what is in use may
 * be garbage. V8 collects again at the latest when half of the rest is used up, so the heap is found to be full
 * before it is.
 */
export class HeapWatch implements Heap {
  isFull = false;
  readonly #onChange: (isFull: boolean) => void;
  readonly #observer = new PerformanceObserver((list) => {
    if (list.getEntries().some(isFullCollection)) void this.#measure();
  });

  /** `onChange` is called when `isFull` changes. */
  constructor(onChange: (isFull: boolean) => void) {
    this.#onChange = onChange;
  }

  start(): void {
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#observer.disconnect();
  }

  async #measure(): Promise<void> {
    // A start does not wait for this module.
    const { getHeapStatistics } = await import('node:v8');
    const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics();
    const bound = Math.max(limit - newObjectsBytes, limit / 2) * limits.heapShareMax;
    const isFull = used > (this.isFull ? bound * releaseShare : bound);
    if (isFull === this.isFull) return;
    this.isFull = isFull;
    this.#onChange(isFull);
  }
}

function isFullCollection(entry: PerformanceEntry): boolean {
  const detail = 'detail' in entry ? entry.detail : undefined;
  return typeof detail === 'object' && detail !== null && 'kind' in detail &&
    detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
}
