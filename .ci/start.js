/**
 * `npm start`: serves from the source, through tsx where Node.js does not run TypeScript itself. npm puts a shell
 * between, which dies of a signal without passing it on: where it has gone, the server stops as if it had been told.
 */
import { join } from 'node:path';

const parent = process.ppid;
setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 250).unref();

const main = join(import.meta.dirname, '..', 'src', 'main.ts');
process.argv.splice(1, 1, main, 'serve');
if (!process.features.typescript) await import('tsx');
await import(main);
