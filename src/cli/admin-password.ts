import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Users } from '../accounts/users.ts';
import type { PasswordPlace } from '../api/shared-place.ts';
import { replaceFile } from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';

const fileName = 'admin-password';

export function passwordFileIn(directory: string): PasswordPlace {
  const path = join(directory, fileName);
  return {
    async keep(password) {
      const files = new NodeFiles(directory);
      try {
        await files.prepare();
        await replaceFile(files, fileName, Buffer.from(`${password}\n`));
      } finally {
        await files.close();
      }
      return { password, where: path };
    },
    forget: () => unlink(path),
  };
}

/**
 * Forgets the password if the user who was removed or has a new one is the first one. After a
 * repair that lost all users, the first user's id is not 1.
 */
export async function forgetAdminPassword(
  place: PasswordPlace,
  users: Users,
  userId: unknown,
): Promise<void> {
  const [oldest] = users.records.view().blocks[0] ?? [];
  if (Number(userId) <= (oldest?.id ?? 0)) await place.forget().catch(() => undefined);
}
