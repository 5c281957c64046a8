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
 * The file of the key ring, in the data directory. Its secrets sign every token, so it is made
 * with mode 0600, and a start refuses one that others than this user, root and a group of this
 * process can read or change.
 */
export const keyFile = 'keys.json';

/** The sources of an app's keys. */
interface KeyOptions {
  /** The files of the data directory. Absent: the data is in memory, or in a shared place. */
  readonly files: Files | undefined;
  /** The only key. Absent: keys are in the key file, or in a shared place. */
  readonly secret: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly place: SharedPlace | undefined;
  readonly audit: Audit;
}

/** The key ring that an app signs and verifies with. */
export class Keys {
  /** Called with each ring, before anything else runs. */
  onRing: (ring: KeyRing) => void = () => undefined;
  readonly #options: KeyOptions;
  readonly #configured: KeyRing | undefined;
  #ring: KeyRing | undefined;

  /** @throws KeyRingError for a secret that cannot be used */
  constructor(options: KeyOptions) {
    const { secret, clock, place } = options;
    this.#options = options;
    this.#configured = secret === undefined ? undefined : keyRingOfSecret(secret, clock.now());
    if (place !== undefined && secret === undefined) place.onRing = (ring) => this.#use(ring);
  }

  /** Returns the ring that was loaded last. */
  readonly ring = (): KeyRing => {
    invariant(this.#ring !== undefined, 'the key ring is loaded before the first request');
    return this.#ring;
  };

  /**
   * Loads the ring from the secret or the key file. Without either, makes a ring and
   * writes the file; in memory, a ring that was made before stays.
   * @throws KeyRingError for a file that cannot be used; the previous ring stays in use
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
 * Reads the ring from its file; `undefined` if there is none. Refuses keys that others can read,
 * and so sign tokens with, or can replace by their own.
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
 * Refuses a file of another user than this one and root, since its owner can give it any mode, and
 * access of these bits, for others and for a group to which this process does not belong.
 */
function refuseAccess(
  path: string,
  bits: number,
  harm: string,
  remedy: (who: string) => string,
): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  const own = process.geteuid?.();
  // Windows has no such owners and groups.
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
