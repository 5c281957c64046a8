import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Users } from '../accounts/users.ts';
import type { PasswordPlace, SharedTools } from '../api/shared-place.ts';
import type { CompleteOptions } from '../app/options.ts';
import { replaceFile } from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';

/** Where the data of servers are: in a directory or in a cluster. */
export interface Location {
  /** Used in messages. */
  readonly name: string;
  readonly data: Pick<CompleteOptions, 'directory' | 'place'>;
  readonly password: PasswordPlace;
}

export const inCluster = (cluster: SharedTools): Location => ({
  name: `${cluster.prefix} in etcd`,
  data: { place: cluster },
  password: cluster,
});

export function inDirectory(directory: string): Location {
  const path = join(directory, passwordFile);
  const password: PasswordPlace = {
    async keep(password) {
      const files = new NodeFiles(directory);
      try {
        await files.prepare();
        await replaceFile(files, passwordFile, Buffer.from(`${password}\n`));
      } finally {
        await files.close();
      }
      return { password, where: path };
    },
    forget: () => unlink(path),
  };
  return { name: directory, data: { directory }, password };
}

const passwordFile = 'admin-password';

/**
 * Forgets the password if the user who was removed or has a new one is the first one. After a
 * repair that lost all users, the first user's id is not 1.
 */
export async function forgetAdminPassword(
  { password }: Location,
  users: Users,
  userId: unknown,
): Promise<void> {
  const [oldest] = users.records.view().blocks[0] ?? [];
  if (Number(userId) <= (oldest?.id ?? 0)) await password.forget().catch(() => undefined);
}
