import type { Terminal } from './command.ts';

/** Shows on a terminal how far a long step is, in one line. Elsewhere it shows nothing. */
export function progressOf({ interactive, err }: Terminal, step: string) {
  let shown = -1;
  return {
    /** `part` is from 0 to 1. */
    onProgress(part: number): void {
      const percent = Math.floor(part * 100);
      if (!interactive || percent === shown) return;
      shown = percent;
      err(`\r${step} … ${percent} %`);
    },
    done(): void {
      if (shown >= 0) err('\n');
    },
  };
}
