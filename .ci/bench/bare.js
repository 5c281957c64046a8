/**
 * The ceilings: a bare `node:http` server that answers the same constant bytes to everything, and one that appends
 * each body to a file with group commit before it answers. Told by JSON as its argument (`BareOrder`); prints its port.
 * Plain JavaScript, so that its start costs no more than Node's own. `node --test` of Node.js 20 takes each such file
 * below `test` for a test, and runs it without an argument: then it serves nothing.
 */
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';

const [order] = process.argv.slice(2).map((argument) => JSON.parse(argument));
if (order !== undefined) await serve(order);

async function serve({ status, body, log }) {
  const fields = [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(Buffer.byteLength(body)),
  ];
  const answer = (outgoing) => {
    outgoing.writeHead(status, fields);
    outgoing.end(body);
  };
  const handle =
    log === undefined ? (_incoming, outgoing) => answer(outgoing) : await appendTo(log, answer);
  const server = createServer(handle).listen(0, '127.0.0.1', () => {
    process.stdout.write(`Bare serves http://127.0.0.1:${server.address().port}\n`);
  });
}

async function appendTo(path, answer) {
  const file = await open(path, 'a', 0o600);
  let waiting = [];
  let writing = false;
  const commit = async () => {
    writing = true;
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      await file.appendFile(group.map(({ line }) => `${line}\n`).join(''));
      await file.datasync();
      for (const { outgoing } of group) answer(outgoing);
    }
    writing = false;
  };
  return (incoming, outgoing) => {
    let line = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (chunk) => (line += String(chunk)));
    incoming.on('end', () => {
      waiting.push({ line, outgoing });
      if (!writing) void commit();
    });
  };
}
