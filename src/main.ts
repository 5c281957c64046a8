#!/usr/bin/env node
// Node.js parses this file before it runs it, so it has no syntax unknown to older versions.
const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);
// From these versions on, Node.js parses HTTP with llhttp 9. Version 8 accepts what a proxy may
// read differently.
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
