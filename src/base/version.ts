/** The version of Cairn; a test holds that `package.json` has the same. */
export const version = '0.1.0';
