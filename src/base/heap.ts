import { getHeapStatistics } from 'node:v8';

/**
 * V8 counts three semi-spaces of its young generation as part of the heap limit. Their size depends
 * on the major version of Node.js.
 */
const youngGenerationBytes = (nodeVersion: string): number =>
  (Number.parseInt(nodeVersion, 10) < 24 ? 48 : 192) * 1024 * 1024;

/**
 * Returns the limit of V8's old generation in bytes: `--max-old-space-size`, or V8's own choice for
 * this machine. Every share of memory is a fraction of it.
 */
export function oldGenerationBytes(
  limit = getHeapStatistics().heap_size_limit,
  nodeVersion = process.versions.node,
): number {
  // A smaller young generation (`--max-semi-space-size`) is invisible from here.
  const rest = limit - youngGenerationBytes(nodeVersion);
  return rest > limit / 4 ? rest : limit / 2;
}
