/**
 * The ceilings: a bare `node:http` server that answers the same constant bytes to everything, and one that appends
 * each body to a file with group commit before it answers. Told by JSON on its input (`BareOrder`); prints its port.
 * Plain JavaScript, so that its start costs no more than Node's own.
 */
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const order = JSON.parse(await text(process.stdin));
const fields = ['Content-Type', 'application/json', 'Content-Length', String(Buffer.byteLength(order.body))];

function answer(outgoing) {
  outgoing.writeHead(order.status, fields);
  outgoing.end(order.body);
}

async function appendTo(path) {
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

const handle =
  order.log === undefined
    ? (_incoming, outgoing) => answer(outgoing)
    : await appendTo(order.log);
const server = createServer(handle).listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`Bare serves http://127.0.0.1:${address.port}\n`);
});
