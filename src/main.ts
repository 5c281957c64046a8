#!/usr/bin/env node
// Node.js parses this file whole before it runs it, so it has no syntax that an older version would not know.
const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);
// Since these versions the parser of Node.js refuses what a proxy may read otherwise: llhttp 9, not 8.
const is20 = major === 20 && (minor > 19 || (minor === 19 && patch >= 2));
if (major > 22 || (major === 22 && minor >= 12) || is20) {
  import('./cli/commands.ts').then(({ main }) => main());
} else {
  process.stderr.write(
    `Cannot run on Node.js ${process.versions.node}: Cairn needs version 20.19.2, or 22.12 or later ` +
      '(see src/docs/troubleshooting.md#does-not-start)\n',
  );
  process.exitCode = 78;
}
