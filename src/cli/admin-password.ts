import { join } from 'node:path';
import type { Users } from '../accounts/users.ts';
import { replaceFile } from '../store/disk/files.ts';
import { NodeFiles } from '../store/disk/node-files.ts';

/** The file with the generated password of the first administrator, in the data directory. */
const name = 'admin-password';

/** Keeps the password in the file, and returns its path. */
export async function keepAdminPassword(directory: string, password: string): Promise<string> {
  const files = new NodeFiles(directory);
  await files.prepare();
  await replaceFile(files, name, Buffer.from(`${password}\n`));
  await files.close();
  return join(directory, name);
}

/** Removes the file where it is about this user, the oldest one, who has another password now or is gone. */
export async function forgetAdminPassword(directory: string, users: Users, userId: unknown): Promise<void> {
  const [oldest] = users.records.view().blocks[0] ?? [];
  if (Number(userId) > (oldest?.id ?? 0)) return;
  await new NodeFiles(directory).remove(name).catch(() => undefined);
}
