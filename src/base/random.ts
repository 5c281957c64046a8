import { randomBytes } from 'node:crypto';

/** A source of `size` unpredictable bytes. Injected, so that a test can be replayed from a seed. */
export type Random = (size: number) => Buffer;

/** The operating system's generator. The only place in Cairn that asks for randomness. */
export const systemRandom: Random = (size) => randomBytes(size);
