/**
 * Every bound of the server in one place, named with its unit. An operator's options override some of them
 * (`src/config.ts`); the README's table of limits is made from the same names.
 */
export const limits = {
  /** The largest request body, before any decoding. */
  bodyBytesMax: 1024 * 1024,
  /** How deep a JSON body may nest: `[]` is 1. */
  jsonDepthMax: 32,
} as const;
