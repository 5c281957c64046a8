import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { options, secrets } from '../config.ts';
import { UsageError } from '../settings.ts';
import type { Command } from './command.ts';

/** What Cairn never needs, whatever it is asked to do. */
const hardening = [
  '--disable-proto=delete',
  '--disallow-code-generation-from-strings',
  '--no-addons',
  '--frozen-intrinsics',
  '--unhandled-rejections=strict',
  // Some of these are called experimental by some versions, at each start.
  '--disable-warning=ExperimentalWarning',
] as const;

/** What Linux tells of this process and machine alone, for the lock: all of `/proc` has links to the whole disk. */
const ownIdentity = ['/proc/sys/kernel/random/boot_id', '/proc/self/ns/pid', '/proc/self/stat', '/etc/machine-id'];

/**
 * The flags under which Node.js allows this program its own files only: its code, its data, its certificate. They
 * differ between versions, so this asks the very one that runs.
 */
export const flags: Command = {
  name: 'flags',
  summary: 'Prints the flags for a locked-down run: f=$(cairn flags) && node $f …/main.js serve',
  options: [options.directory, options.tlsCert, options.tlsKey],
  secrets: ['CAIRN_SECRET', 'CAIRN_ADMIN_PASSWORD'],
  async run(call) {
    const program = dirname(dirname(fileURLToPath(import.meta.url)));
    // With the asterisk it does not matter whether the directory is there yet.
    const content = resolve(call.read(options.directory), '*');
    const secretFiles = Object.keys(secrets).map((name) => call.terminal.environment[`${name}_FILE`]);
    const files = [call.read(options.tlsCert), call.read(options.tlsKey), ...secretFiles];
    const named = files.flatMap((file) => (file ? [resolve(file)] : []));
    // Each once: Node.js 20 aborts at a path that it has been told already, as of a certificate and key in one file.
    const reads = new Set([program, resolve(program, '../package.json'), content, ...ownIdentity, ...named]);
    const spaced = [...reads].find((path) => /[\s,]/.test(path));
    if (spaced !== undefined) {
      throw new UsageError(`Cannot print flags: the path "${spaced}" has a space or a comma in it`);
    }
    // Node.js 20 calls the permission model experimental, 26 also asks for the network.
    const known = process.allowedNodeEnvironmentFlags;
    const lines = [
      known.has('--permission') ? '--permission' : '--experimental-permission',
      ...(known.has('--allow-net') ? ['--allow-net'] : []),
      ...[...reads].map((path) => `--allow-fs-read=${path}`),
      `--allow-fs-write=${content}`,
      ...hardening,
    ];
    call.terminal.out(`${lines.join('\n')}\n`);
  },
};
