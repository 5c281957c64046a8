import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';

/**
 * The file in the data directory with the generated password of the first administrator.
 */
const fileName = 'admin-password';

/** The id of the first user, whose password the file has. */
const firstUserId = 1;

/** Writes the password to the file, and returns its path. */
export async function keepAdminPassword(
  directory: string,
  password: string
): Promise<string> {
  const files = new NodeFiles(directory);
  await files.prepare();
  await replaceFile(files, fileName, Buffer.from(`${password}\n`));
  await files.close();
  return join(directory, fileName);
}

/**
 * Removes the file if this user, who was removed or has a new password, is the first one.
 */
export async function forgetAdminPassword(
  directory: string,
  userId: unknown
): Promise<void> {
  if (userId === firstUserId)
    await unlink(join(directory, fileName)).catch(() => undefined);
}
