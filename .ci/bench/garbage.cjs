/**
 * Required by a server before its own code. If CAIRN_BENCH_GARBAGE names a file, SIGUSR2 starts counting the bytes
 * that are allocated and that reach the old space, and a second one writes both to that file. V8 reports the sizes of
 * its spaces before and after each collection.
 */
const { renameSync, writeFileSync } = require('node:fs');
const { GCProfiler, getHeapSpaceStatistics } = require('node:v8');

const path = process.env.CAIRN_BENCH_GARBAGE;
let profiler;
let atBegin;
if (path !== undefined) process.on('SIGUSR2', toggle);

function toggle() {
  const now = getHeapSpaceStatistics().map((space) => ({
    spaceName: space.space_name,
    spaceUsedSize: space.space_used_size,
  }));
  if (profiler === undefined) {
    profiler = new GCProfiler();
    atBegin = now;
    return profiler.start();
  }
  writeFileSync(`${path}.new`, JSON.stringify(sum(atBegin, profiler.stop().statistics, now)));
  renameSync(`${path}.new`, path);
}

/** Between collections the spaces only grow; what the old space gains by one of the young generation was promoted. */
function sum(begin, collections, end) {
  let [allocated, promoted, last] = [0, 0, begin];
  const grow = (spaces) => {
    const atOnce = Math.max(0, used(spaces, /^old_/) - used(last, /^old_/));
    allocated += Math.max(0, used(spaces, /^new_/) - used(last, /^new_/)) + atOnce;
    promoted += atOnce;
  };
  for (const { gcType, beforeGC, afterGC } of collections) {
    const [before, after] = [beforeGC.heapSpaceStatistics, afterGC.heapSpaceStatistics];
    grow(before);
    if (gcType === 'Scavenge')
      promoted += Math.max(0, used(after, /^old_/) - used(before, /^old_/));
    last = after;
  }
  grow(end);
  return { allocated, promoted };
}

function used(spaces, name) {
  let bytes = 0;
  for (const { spaceName, spaceUsedSize } of spaces)
    if (name.test(spaceName)) bytes += spaceUsedSize;
  return bytes;
}
