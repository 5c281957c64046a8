/**
 * Measures the cost of a write for a flash disk: the bytes that the system is told to write, in whole pages, by the
 * size of the record and of the store. "In a row" is many records one after another; "seldom" is one every 40 s.
 * Between them, only small files follow the journal.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fillItems } from './fill.ts';
import { email, password, startProgram, stop } from './processes.ts';

export interface WearCase {
  /** A built `main.js`. */
  readonly main: string;
  readonly textLength: number;
  readonly records: number;
  readonly words: readonly string[];
  /** The pause after each `writes` writes. */
  readonly pauseMs: number;
  readonly writes: number;
}

/** Returns the bytes written for each record. */
export async function measureWear(one: WearCase): Promise<number> {
  const { main, textLength, records, words, pauseMs, writes } = one;
  const directory = mkdtempSync(join(tmpdir(), 'cairn-wear-'));
  try {
    const data = join(directory, 'data');
    await fillItems(data, records);
    const collections = join(directory, 'notes.json');
    const text = { kind: 'text', max: 100_000 };
    const notes = { name: 'notes', singular: 'note', fields: { text } };
    writeFileSync(collections, JSON.stringify({ collections: [notes] }));
    const own = ['--data', data, '--port', '0', '--log', 'json', '--log-level', 'warn', '--collections', collections];
    const server = await startProgram(directory, [main, 'serve', ...own, ...words]);
    const origin = `http://127.0.0.1:${server.port}`;
    const post = async (path: string, body: object, token = ''): Promise<object> => {
      const headers = { 'Content-Type': 'application/json', ...(token !== '' && { Authorization: `Bearer ${token}` }) };
      const answer = await fetch(origin + path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (answer.status !== 201) throw new Error(`${path} answers ${answer.status}: ${await answer.text()}`);
      return Object(await answer.json());
    };
    const { access_token: token } = Object(await post('/tokens', { email, password }));
    // First let the server write everything that the start and the sign-in have postponed.
    await delay(pauseMs);
    const before = writtenBy(server.process.pid ?? 0);
    for (let write = 0; write < writes; write += 1) {
      await post('/notes', { text: 'x'.repeat(textLength) }, token);
      await delay(pauseMs);
    }
    const bytes = writtenBy(server.process.pid ?? 0) - before;
    await stop(server);
    return bytes / writes;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export async function benchWear(main: string): Promise<string> {
  const columns = ['Text of a record', 'Records in the store', 'In a row', 'One each 40 s'];
  const sizes = [100, 1000, 10_000].flatMap((textLength) =>
    [0, 10_000, 100_000].map((records) => ({ main, textLength, records })));
  const rows = sizes.map(async (size) => {
    const inARow = measureWear({ ...size, words: [], pauseMs: 0, writes: 500 });
    const seldom = measureWear({ ...size, words: [], pauseMs: 40_000, writes: 3 });
    return [size.textLength, size.records, await inARow, await seldom];
  });
  const lines = [columns, columns.map(() => '--:'), ...(await Promise.all(rows)).map((row) =>
    row.map((figure) => Math.round(figure).toLocaleString('en')))];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function writtenBy(pid: number): number {
  const [, bytes = ''] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? [];
  return Number(bytes);
}
