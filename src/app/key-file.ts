import { statSync } from 'node:fs';
import { join } from 'node:path';
import {
  KeyRingError,
  keyRingOfSecret,
  newKeyRing,
  parseKeyRing,
  serialiseKeyRing,
  type KeyRing,
} from '../auth/keys.ts';
import { invariant } from '../base/errors.ts';
import type { Clock, Random } from '../base/system.ts';
import { readWhole, replaceFile, type Files } from '../store/disk/files.ts';
import type { Audit } from '../accounts/events.ts';
import type { SharedPlace } from '../api/shared-place.ts';

/**
 * The key ring's file in the data directory. Its secrets sign every token, so its mode is 0600, and
 * a start refuses a file that anyone but this user, root and a group of this process can read or
 * change.
 */
export const keyFile = 'keys.json';

interface KeyOptions {
  /** The files of the data directory. Absent if the data is in memory or in a shared place. */
  readonly files: Files | undefined;
  /** The only key. If absent, keys are in the key file or a shared place. */
  readonly secret: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly place: SharedPlace | undefined;
  readonly audit: Audit;
}

export class SigningKeys {
  onRing: (ring: KeyRing) => void = () => undefined;
  readonly #options: KeyOptions;
  readonly #configured: KeyRing | undefined;
  #ring: KeyRing | undefined;

  /** @throws KeyRingError for an unusable secret */
  constructor(options: KeyOptions) {
    const { secret, clock, place } = options;
    this.#options = options;
    this.#configured = secret === undefined ? undefined : keyRingOfSecret(secret, clock.now());
    if (place !== undefined && secret === undefined) place.onRing = (ring) => this.#use(ring);
  }

  readonly ring = (): KeyRing => {
    invariant(this.#ring !== undefined, 'the key ring is loaded before the first request');
    return this.#ring;
  };

  /**
   * Loads the ring from the secret or the key file. Without either, creates a ring and writes the
   * file; in memory, an earlier ring stays.
   * @throws KeyRingError for an unusable file; the previous ring then stays
   */
  async load(): Promise<void> {
    const { files, clock, random, place } = this.#options;
    if (this.#configured !== undefined) return this.#use(this.#configured);
    if (place !== undefined) return place.loadKeys();
    const found = files === undefined ? this.#ring : await readKeyRing(files);
    const ring = found ?? newKeyRing(random, clock.now());
    if (found === undefined && files !== undefined) {
      await replaceFile(files, keyFile, Buffer.from(serialiseKeyRing(ring)));
    }
    this.#use(ring);
  }

  #use(ring: KeyRing): void {
    const former = this.#ring?.keys[0].kid;
    const { kid } = ring.keys[0];
    this.#ring = ring;
    this.onRing(ring);
    if (former !== undefined && former !== kid) this.#options.audit('keys_rotated', { kid });
  }
}

/**
 * Reads the ring from its file; `undefined` if there is none. Refuses keys that others could read,
 * and sign tokens with, or replace.
 * @throws KeyRingError that says what to do
 */
export async function readKeyRing(files: Files): Promise<KeyRing | undefined> {
  const { directory } = files;
  const file = join(directory, keyFile);
  const content = await readWhole(files, keyFile);
  const ring = content && ringIn(content);
  refuseAccess(file, 0o6, 'read or change', (who) => `chmod ${who}= ${file}`);
  refuseAccess(directory, 0o2, `replace ${keyFile} in`, (who) => `chmod ${who}-w ${directory}`);
  return ring;
}

function ringIn(content: Buffer): KeyRing {
  try {
    return parseKeyRing(content);
  } catch (error) {
    if (!(error instanceof KeyRingError)) throw error;
    throw new KeyRingError(
      `${error.message}; put ${keyFile} back from a backup, or remove it to get new keys`,
    );
  }
}

/**
 * Refuses a file of anyone but this user and root, since its owner can change its mode. Also
 * refuses access by `bits` for others, and for a group that this process is not in.
 */
function refuseAccess(
  path: string,
  bits: number,
  harm: string,
  remedy: (who: string) => string,
): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  const own = process.geteuid?.();
  // Windows does not have such owners and groups.
  if (stats === undefined || own === undefined || process.getgroups === undefined) return;
  const { uid, gid } = stats;
  if (stats.isFile() && uid !== own && uid !== 0)
    throw new KeyRingError(
      `Cannot use the keys: another user (${uid}) owns ${path}, can change it, and so sign tokens; ` +
        `run chown ${own} ${path}`,
    );
  const isOwnGroup = [process.getegid?.(), ...process.getgroups()].includes(gid);
  const group = !isOwnGroup && (stats.mode & (bits << 3)) !== 0 ? 'g' : '';
  const others = (stats.mode & bits) !== 0 ? 'o' : '';
  if (group + others === '') return;
  const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
  throw new KeyRingError(
    `Cannot use the keys: other users can ${harm} ${path} (mode ${mode}), and so sign tokens; ` +
      `run ${remedy(group + others)}`,
  );
}
