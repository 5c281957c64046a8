/** A reporter: appends the file of each test that failed to what CAIRN_FAILED names, a line each. */
import { appendFileSync } from 'node:fs';

export default async function* failed(events) {
  const told = new Set();
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || told.has(data.file ?? data.name)) continue;
    told.add(data.file ?? data.name);
    appendFileSync(process.env.CAIRN_FAILED, `${data.file ?? data.name}\n`);
  }
}
