import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { FixedContent } from '../../api/fixed-content.ts';
import type { Route } from '../../api/call.ts';

/**
 * The page's content security policy (CSP Level 3, Trusted Types): it loads from and calls only
 * this server, and never turns a string into markup or script. Forms cannot navigate, so a password
 * cannot end up in an address. Images from other hosts load only if a declaration has images.
 */
export const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const folder = new URL('../../web/', import.meta.url);
/** The type checker's `types.js` has only comments. */
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => extname(name) in types && name !== 'types.js');

/**
 * Returns a public route for each of the page's files, which are in `src/web` (`dist/web` after a
 * build) and the same for every caller. A file is read on first use. Browsers revalidate it on each
 * use, since it changes with the server. `isOpen` tells the page that signing in is not required.
 */
export function pageRoutes(isOpen: boolean, hasImages = false): Route[] {
  const fields = hasImages
    ? fixedFields.map((field) => field.replace("img-src 'self'", "img-src 'self' https:"))
    : fixedFields;
  return files.map((name) => {
    const path = name === 'index.html' ? '/' : `/-/page/${name}`;
    let file: FixedContent | undefined;
    return {
      method: 'GET',
      path,
      access: 'public',
      query: 'ignored',
      handle({ request }) {
        file ??= load(name, isOpen);
        return file.answer(request, types[extname(name)] ?? '', fields);
      },
    };
  });
}

// prettier-ignore
const fixedFields = [
  'Cache-Control', 'no-cache',
  'Content-Security-Policy', contentSecurityPolicy,
  'X-Content-Type-Options', 'nosniff', 'Referrer-Policy', 'no-referrer',
  'Cross-Origin-Resource-Policy', 'same-origin', 'Cross-Origin-Opener-Policy', 'same-origin',
];

/** @throws Error of `node:fs` if a file of the installation is missing */
function load(name: string, isOpen: boolean): FixedContent {
  const file = readFileSync(new URL(name, folder));
  if (!isOpen) return new FixedContent(file);
  return new FixedContent(
    Buffer.from(file.toString().replace('<html ', '<html data-auth="none" ')),
  );
}
