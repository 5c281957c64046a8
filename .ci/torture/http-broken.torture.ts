/** The connections of `test/http/broken.test.ts` that break at any point of an exchange, many more of them. */
process.env['CAIRN_BROKEN_CONNECTIONS'] ??= '10000';
await import('../../test/http/broken.test.ts');
export {};
