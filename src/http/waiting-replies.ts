import { Shares } from '../base/shares.ts';

/**
 * The memory of replies that wait for slow readers. Where others have all of it, the caller with
 * the most loses its oldest replies: slow readers may keep theirs for hours.
 */
export class WaitingReplies extends Shares {
  /** For each caller how its replies are broken off, and their bytes, the oldest first. */
  readonly #replies = new Map<string, Map<() => void, number>>();

  /**
   * Takes memory for a reply, which `breakOff` ends. Returns how the memory is given back;
   * `undefined` if there is none.
   */
  begin(caller: string, bytes: number, breakOff: () => void): (() => void) | undefined {
    while (!this.take(caller, bytes)) if (!this.#makeRoom(caller, bytes)) return undefined;
    const own = this.#replies.get(caller) ?? new Map<() => void, number>();
    const end = (): void => {
      if (!own.delete(breakThisOff)) return;
      if (own.size === 0) this.#replies.delete(caller);
      this.give(caller, bytes);
    };
    const breakThisOff = (): void => {
      end();
      breakOff();
    };
    this.#replies.set(caller, own.set(breakThisOff, bytes));
    return end;
  }

  /** Breaks off the oldest reply of the caller that has the most, unless that is hardly more. */
  #makeRoom(caller: string, bytes: number): boolean {
    let most = caller;
    for (const each of this.#replies.keys()) if (this.heldBy(each) > this.heldBy(most)) most = each;
    const [[breakOff, length] = [() => undefined, 0]] = this.#replies.get(most) ?? [];
    const isMore = this.heldBy(most) - length >= this.heldBy(caller) + bytes;
    if (isMore) breakOff();
    return isMore;
  }
}
