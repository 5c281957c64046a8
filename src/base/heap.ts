import { getHeapStatistics } from 'node:v8';

/**
 * What V8 counts for its young generation as part of the heap's limit, three semi-spaces, by the
 * major version of Node.js.
 */
const youngGenerationBytes = (nodeVersion: string): number =>
  (Number.parseInt(nodeVersion, 10) < 24 ? 48 : 192) * 1024 * 1024;

/**
 * Returns the limit of V8's old generation, in bytes: `--max-old-space-size`, or what V8 chose for
 * this machine. All shares of memory are parts of it.
 */
export function oldGenerationBytes(
  limit = getHeapStatistics().heap_size_limit,
  nodeVersion = process.versions.node,
): number {
  // A smaller young generation (`--max-semi-space-size`) cannot be seen.
  const rest = limit - youngGenerationBytes(nodeVersion);
  return rest > limit / 4 ? rest : limit / 2;
}
