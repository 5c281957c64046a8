/** Many more connections than in `test/http/broken.test.ts`, which break at any point of an exchange. */
process.env['CAIRN_BROKEN_CONNECTIONS'] ??= '10000';
await import('../../test/http/broken.test.ts');
export {};
