/** Whether the suite runs locked down, from the built tree of .ci/release/locked.release.ts. */
export const isLockedRun = process.env['CAIRN_TEST_LOCKED'] === 'true';

/** What the store says where Node.js denies syncs when it is locked down. */
export const noticesOfDeniedSyncs =
  isLockedRun && Number.parseInt(process.versions.node, 10) >= 26
    ? ['this Node denies syncs of directories: files are written through']
    : [];
