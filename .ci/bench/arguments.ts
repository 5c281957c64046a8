import { parseArgs } from 'node:util';

export const usage = `Usage: npm run bench -- [peers] [--rounds N] [--seconds N] [--only TEXT] [--former FOLDER|TAG]
       npm run bench -- parent [--rounds N] [--seconds N]
       npm run bench -- store [--rounds N] [--seconds N] [--records N,N]
       npm run bench -- cluster [--rounds N] [--seconds N]
       npm run bench -- wear

--rounds N      measurements of each case; the median counts (default: 5)
--seconds N     how long each one takes (default: 3)
--only TEXT     cases with this text in their names
--former WHAT   takes a former release into the same run: a folder in which it is built, or a name that git knows
peers           takes into the same run the commit before this tree and the former editions, out of git's history,
                and Fastify, its JWT plug-in, better-sqlite3 and json-server; says what is not to be had. Counts
                what a request allocates, and how far this tree differs from itself
parent          a read and a create beside the commit before this tree, in a minute
wear            how many bytes a write costs a disk, in minutes
--records N,N   sizes of the store (default: 1000,100000,1000000)
`;

/** @throws Error that says what is wrong with the arguments */
export function readArguments(args: readonly string[]) {
  const { values: flags, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      only: { type: 'string', default: '' },
      former: { type: 'string' },
      records: { type: 'string', default: '1000,100000,1000000' },
    },
  });
  const [mode, ...more] = positionals;
  if (![undefined, 'peers', 'parent', 'store', 'cluster', 'wear'].includes(mode) || more.length > 0) {
    throw new Error('there are only "peers", "parent", "store", "cluster" and "wear" to name');
  }
  const [rounds, seconds, ...records] = [flags.rounds, flags.seconds, ...flags.records.split(',')].map(Number);
  const counts = [rounds, seconds, ...records].every((count = NaN) => count > 0);
  if (!counts) throw new Error('--rounds, --seconds and --records are numbers above 0');
  return { flags, mode, rounds: rounds ?? 0, measureMs: (seconds ?? 0) * 1000, records };
}

/** The message as one line. */
export function explainError(error: unknown): string {
  const [reason] = error instanceof Error ? error.message.split(/\. |\n/) : [String(error)];
  return `Cannot run the bench: ${reason}; see npm run bench -- --help\n`;
}
