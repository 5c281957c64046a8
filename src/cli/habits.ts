import { inManual } from '../base/manual.ts';

const watch = 'leave it out: a file is imported once, and its directory has the data from then on';
const files = 'let the server of your front end serve files';
const paths = 'let the proxy of your front end change paths';
const program = `write a program: ${inManual('programs.md#embedding')}`;
const delay = "slow the network down in your browser's developer tools";
const id = 'rename the member to id in the file';
const keys = 'end the names of references in Id';
const access = `declare the access: ${inManual('access.md#access')}`;

/** Advice for words of json-server and other tools. */
export const habits: Readonly<Record<string, string>> = {
  update: `${inManual('operations.md#upgrade')} says how to upgrade`,
  start: 'type cairn serve, or cairn FILE.json',
  '-p': 'type --port',
  '-H': 'type --host',
  '-w': watch,
  '--watch': watch,
  '-q': 'type --log none',
  '--quiet': 'type --log none',
  '-s': files,
  '--static': files,
  '-r': paths,
  '--routes': paths,
  '-m': program,
  '--middlewares': program,
  '-d': delay,
  '--delay': delay,
  '-i': id,
  '--id': id,
  '--fks': keys,
  '--foreignKeySuffix': keys,
  '-S': 'copy the directory with cairn backup',
  '--snapshots': 'copy the directory with cairn backup',
  '--ro': access,
  '--read-only': access,
};
