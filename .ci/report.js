/**
 * The reporter without a terminal: TAP, ending with the names of failed tests. Writes their files, a line each, to the
 * file that CAIRN_FAILED names.
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { tap } from 'node:test/reporters';

export default async function* report(events) {
  const names = [];
  const files = new Set();
  async function* watch() {
    for await (const event of events) {
      if (event.type === 'test:fail') note(event.data);
      yield event;
    }
  }
  function note({ name, file = name, details }) {
    files.add(file);
    const source = relative('.', file).replace(/^[.]test[/\\](.*)js$/, '$1ts');
    if (details.error?.failureType !== 'subtestsFailed')
      names.push(`# Failed: ${name} (${source})\n`);
  }
  yield* tap(watch());
  yield* names;
  if (process.env.CAIRN_FAILED) {
    appendFileSync(process.env.CAIRN_FAILED, [...files].map((file) => `${file}\n`).join(''));
  }
}
