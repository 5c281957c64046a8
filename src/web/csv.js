// @ts-check
/**
 * Comma-separated values (RFC 4180). They are written so that no spreadsheet runs them as formulas, and read back
 * unchanged.
 */

/** Matches the beginning of a text that a spreadsheet takes for a formula (OWASP, "CSV injection"). */
const formula = /^'*[=+\-@\t\r]/u;

/** @type {(rows: readonly (readonly unknown[])[]) => string} */
export const writeCsv = (rows) => rows.map((row) => `${row.map(cell).join()}\r\n`).join('');

/** @param {unknown} value */
function cell(value) {
  const text = typeof value === 'string' && formula.test(value) ? `'${value}` : `${value ?? ''}`;
  return /[",;\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Parses a text into rows. The separator is found in the first line. @param {string} text */
export function readCsv(text) {
  const separator = /[;\t]/u.exec(text.split('\n')[0] ?? '')?.[0] ?? ',';
  const cells = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^${separator}\\r\\n]*))(${separator}|\\r?\\n|$)`,
    'gu',
  );
  /** @type {string[][]} */ const rows = [];
  /** @type {string[]} */ let row = [];
  for (const [, quoted, plain = '', end] of text.replace('\ufeff', '').matchAll(cells)) {
    const content = quoted?.replaceAll('""', '"') ?? plain;
    row.push(formula.test(content) ? content.replace("'", '') : content);
    if (end === separator) continue;
    if (row.join('')) rows.push(row);
    row = [];
  }
  return { separator, rows };
}
