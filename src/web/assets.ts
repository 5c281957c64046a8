import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { Page } from '../api/pages.ts';

/**
 * What the page's files may do in a browser (CSP Level 3, Trusted Types): load and call this server alone, and never
 * turn a string into markup or script. No form may navigate, so a password cannot end up in an address.
 */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const scripts = ['app.js', 'api.js', 'dom.js', 'form.js', 'records.js', 'person.js'];

/**
 * The page's files, which stand beside this module (in `src/web`, and in `dist/web` after a build), by the path that
 * each is served at. Each is read when it is first asked for. `isOpen`: the page is told that nobody has to sign in.
 */
export function loadAssets(isOpen = false): ReadonlyMap<string, () => Page> {
  return new Map(
    ['index.html', 'page.css', 'icon.svg', ...scripts].map((name) => {
      let asset: Page | undefined;
      return [name === 'index.html' ? '/' : `/page/${name}`, () => (asset ??= loadAsset(name, isOpen))];
    }),
  );
}

/** @throws Error of `node:fs` when a file of the installation is missing */
function loadAsset(name: string, isOpen: boolean): Page {
  const file = readFileSync(new URL(name, import.meta.url));
  const body = isOpen ? Buffer.from(file.toString().replace('<html ', '<html data-auth="none" ')) : file;
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { type: types[extname(name)] ?? '', body, etag, contentSecurityPolicy };
}
