/**
 * The ceilings: a bare `node:http` server with the same response to everything, a text or records that it serializes
 * each time, and one that appends each body to a file with group commit before it responds. Its argument is a file
 * with its order (`BareOrder`). It prints its port. Plain JavaScript, so that its start costs no more than Node's own.
 * `node --test` of Node.js 20 takes each such file below `test` for a test, and runs it without an argument: then it
 * serves nothing.
 */
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';

const [order] = process.argv.slice(2).map((path) => JSON.parse(readFileSync(path, 'utf8')));
if (order !== undefined) await serve(order);

async function serve({ status, body, log }) {
  const isText = typeof body === 'string';
  const answer = (outgoing) => {
    const text = isText ? body : JSON.stringify(body);
    const length = String(Buffer.byteLength(text));
    outgoing.writeHead(status, ['Content-Type', 'application/json', 'Content-Length', length]);
    outgoing.end(text);
  };
  const handle =
    log === undefined ? (_incoming, outgoing) => answer(outgoing) : await appendTo(log, answer);
  const server = createServer(handle).listen(0, '127.0.0.1', () => {
    process.stdout.write(`Bare serves http://127.0.0.1:${server.address().port}\n`);
  });
}

async function appendTo(path, answer) {
  const file = await open(path, 'a', 0o600);
  const feeds = [];
  let waiting = [];
  let writing = false;
  const commit = async () => {
    writing = true;
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      await file.appendFile(group.map(({ line }) => `${line}\n`).join(''));
      await file.datasync();
      for (const { line, outgoing } of group) {
        for (const feed of feeds) feed.write(`data: ${line}\n\n`);
        answer(outgoing);
      }
    }
    writing = false;
  };
  return (incoming, outgoing) => {
    if (incoming.method === 'GET') {
      feeds.push(outgoing);
      return outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
    }
    let line = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (chunk) => (line += String(chunk)));
    incoming.on('end', () => {
      waiting.push({ line, outgoing });
      if (!writing) void commit();
    });
  };
}
