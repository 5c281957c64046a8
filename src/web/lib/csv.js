// @ts-check
/**
 * Comma-separated values (RFC 4180), written so that spreadsheets do not run formulas, and read
 * back unchanged. An empty text is quoted, and a cell without a value is `undefined`.
 */

/** Matches the beginning of a formula in a spreadsheet (OWASP, "CSV injection"). */
const formula = /^'*[=+\-@\t\r\n＝＋－＠]/u;

/** @type {(rows: readonly (readonly (string | number | undefined)[])[]) => string} */
export const writeCsv = (rows) => rows.map((row) => `${row.map(writeCell).join()}\r\n`).join('');

/** @param {string | number | undefined} value */
function writeCell(value) {
  if (value === undefined || typeof value === 'number') return `${value ?? ''}`;
  const safe = formula.test(value) ? `'${value}` : value;
  return safe === '' || /[",;\t\r\n]/u.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * Parses a text into rows. The first line reveals the separator.
 * @type {(text: string) => { separator: string, rows: (string | undefined)[][] }}
 */
export function readCsv(text) {
  const [head = ''] = text.replaceAll(/"(?:[^"]|"")*"/gu, '').split('\n');
  const separator = /[;\t]/u.exec(head)?.[0] ?? ',';
  const cells = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^${separator}\\r\\n]*))(${separator}|\\r?\\n|$)`,
    'gu',
  );
  /** @type {(string | undefined)[][]} */ const rows = [];
  /** @type {(string | undefined)[]} */ let row = [];
  for (const [, quoted, plain, end] of text.replace(/^\ufeff/u, '').matchAll(cells)) {
    const content = quoted?.replaceAll('""', '"') ?? (plain || undefined);
    row.push(content && formula.test(content) ? content.replace(/^'/u, '') : content);
    if (end === separator) continue;
    if (row.some((each) => each !== undefined)) rows.push(row);
    row = [];
  }
  return { separator, rows };
}
