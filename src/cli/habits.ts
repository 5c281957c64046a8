import { inManual } from '../base/manual.ts';

/** What to type in place of words that json-server and other tools take. */
export const habits: Readonly<Record<string, string>> = {
  update: `${inManual('operations.md#upgrade')} says how to upgrade`,
  start: 'type cairn serve, or cairn FILE.json',
  '-p': 'type --port',
  '-H': 'type --host',
  '-w': 'leave it out: a file is imported once, and cairn FILE.json --again imports it anew',
  '--watch': 'leave it out: a file is imported once, and cairn FILE.json --again imports it anew',
  '-q': 'type --log none',
  '--quiet': 'type --log none',
  '-s': 'let another server serve files',
  '--static': 'let another server serve files',
  '--routes': 'let a proxy change paths',
  '--middlewares': `write a program: ${inManual('programs.md#embedding')}`,
  '--read-only': `declare the access: ${inManual('access.md#access')}`,
};
