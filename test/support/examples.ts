/**
 * The programs in README.md and in the reference: each whole, with its title as a comment in the first line,
 * and what it prints behind each `console.log`. They are JavaScript, also where they are TypeScript.
 */
import { handbook } from './source.ts';

export interface Example {
  readonly title: string;
  readonly code: string;
  /** What it prints. */
  readonly promised: readonly string[];
  /** The packages of others that it imports. */
  readonly packages: readonly string[];
}

const blocks = handbook.matchAll(/^```[tj]s\n(\/\/ .*?)^```$/gms);

export const examples: readonly Example[] = Array.from(blocks, ([, code = '']) => ({
  title: code.split('\n')[0]?.replace('// ', '') ?? '',
  code,
  promised: Array.from(code.matchAll(/console\.log\(.*\/\/ (.*)$/gm), ([, output = '']) => output),
  packages: Array.from(code.matchAll(/^import .* from '((?!node:|cairn-api')[^']+)';$/gm), ([, name = '']) => name),
}));

/** The example whose title begins so. */
export function exampleOf(title: string): Example {
  const found = examples.find((example) => example.title.startsWith(title));
  if (found === undefined) throw new Error(`no example is titled "${title}"`);
  return found;
}
