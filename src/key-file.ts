import { keyRingOfSecret, newKeyRing, parseKeyRing, serialiseKeyRing, type KeyRing } from './auth/keys.ts';
import type { Clock } from './base/clock.ts';
import type { Random } from './base/random.ts';
import { readWhole, replaceFile, type Files } from './store/files.ts';

/** The key ring in the data directory: its secrets sign every token, so it is made with mode 0600. */
export const keyFile = 'keys.json';

export interface KeySource {
  /** Absent for an app in memory, whose keys end with it. */
  readonly files: Files | undefined;
  /** A configured secret takes the place of the file, which is neither read nor made. */
  readonly secret: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * The ring to sign and verify with; made, and written to the file, where there is none yet.
 * @throws KeyRingError for a secret or a file that cannot be used
 */
export async function loadKeyRing({ files, secret, clock, random }: KeySource): Promise<KeyRing> {
  if (secret !== undefined) return keyRingOfSecret(secret, clock.now());
  if (files === undefined) return newKeyRing(random, clock.now());
  const content = await readWhole(files, keyFile);
  if (content !== undefined) return parseKeyRing(content);
  const ring = newKeyRing(random, clock.now());
  await saveKeyRing(files, ring);
  return ring;
}

/** Puts `ring` in the place of the one in the file, durably and as a whole. */
export async function saveKeyRing(files: Files, ring: KeyRing): Promise<void> {
  await replaceFile(files, keyFile, Buffer.from(serialiseKeyRing(ring)));
}
