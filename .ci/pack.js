/**
 * Around `npm pack`: `node .ci/pack.js before` or `after`. `src/LICENSE` and a bill of materials (CycloneDX 1.6) are in
 * the package's root meanwhile, where tools look for them. Files get the same mode under any umask, since npm packs it.
 */
import {
  chmodSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

process.chdir(join(import.meta.dirname, '..'));
if (process.argv[2] === 'before') {
  copyFileSync('src/LICENSE', 'LICENSE');
  writeFileSync('bom.json', `${JSON.stringify(bill(), null, 2)}\n`);
  const below = ['src', 'dist'].flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((path) => join(folder, path)),
  );
  for (const path of ['LICENSE', 'bom.json', 'README.md', 'package.json', ...below]) {
    if (statSync(path).isFile()) chmodSync(path, 0o644);
  }
} else {
  rmSync('LICENSE');
  rmSync('bom.json');
}

/** Cairn's only component is itself. A time or serial number would differ between clones, so there is none. */
function bill() {
  const { name, version, description, license, dependencies } = JSON.parse(
    readFileSync('package.json', 'utf8'),
  );
  if (Object.keys(dependencies).length > 0)
    throw new Error('The bill of materials says that there are no packages.');
  const purl = `pkg:npm/${name}@${version}`;
  const licenses = [{ license: { id: license } }];
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': purl,
        name,
        version,
        description,
        licenses,
        purl,
      },
    },
    components: [],
    dependencies: [{ ref: purl, dependsOn: [] }],
    compositions: [{ aggregate: 'complete', assemblies: [purl], dependencies: [purl] }],
  };
}
