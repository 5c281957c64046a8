import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Users } from '../accounts/users.ts';
import { replaceFile } from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';

/**
 * The file in the data directory with the generated password of the first administrator.
 */
const fileName = 'admin-password';

/** Writes the password to the file, and returns its path. */
export async function keepAdminPassword(directory: string, password: string): Promise<string> {
  const files = new NodeFiles(directory);
  await files.prepare();
  try {
    await replaceFile(files, fileName, Buffer.from(`${password}\n`));
  } finally {
    await files.close();
  }
  return join(directory, fileName);
}

/**
 * Removes the file if this user, who was removed or has a new password, is the first one.
 * After a repair that lost all users, the id of the first one is not 1.
 */
export async function forgetAdminPassword(
  directory: string,
  users: Users,
  userId: unknown,
): Promise<void> {
  const [oldest] = users.records.view().blocks[0] ?? [];
  if (Number(userId) <= (oldest?.id ?? 0))
    await unlink(join(directory, fileName)).catch(() => undefined);
}
