#!/usr/bin/env node
// Node.js parses this file whole before it runs it, so it has no syntax that an older version would not know.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major > 20 || (major === 20 && minor >= 15)) {
  import('./cli/commands.ts').then(({ main }) => main());
} else {
  process.stderr.write(
    `Cannot run on Node.js ${process.versions.node}: Cairn needs version 20.15 or later\n`,
  );
  process.exitCode = 78;
}
