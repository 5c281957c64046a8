/**
 * `npm start`: serves from the source, through tsx where Node.js does not run TypeScript itself. npm puts a shell
 * between, which dies of a signal without passing it on: where it has gone, the server stops as if it had been told.
 */
import { fileURLToPath } from 'node:url';

const parent = process.ppid;
setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 250).unref();

const main = new URL('../src/main.ts', import.meta.url);
process.argv.splice(1, 1, fileURLToPath(main), 'serve');
if (!process.features.typescript) await import('tsx');
await import(main.href);
