import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { isLockedRun } from './basics.ts';

/** Mounts a file system of this size; `undefined` if that is not allowed here. */
export function mountSmallDisk(
  t: TestContext,
  size: string,
  disk = mkdtempSync(join(tmpdir(), 'cairn-disk-')),
): string | undefined {
  const mounted = isLockedRun ? undefined : spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'none', disk]);
  t.after(() => {
    if (mounted?.status === 0) spawnSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  return mounted?.status === 0 ? disk : undefined;
}
