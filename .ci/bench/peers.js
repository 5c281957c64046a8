/**
 * The peers, in plain JavaScript, copied next to the packages that they need:
 * `node peers.js fastify|json-server ITEMS SECRET`. Without arguments, as `node --test` of Node.js 20 runs it, it
 * serves nothing.
 */
import { copyFileSync, readFileSync, rmSync } from 'node:fs';

const [which, items, secret] = process.argv.slice(2);
const servers = { fastify: serveFastify, 'json-server': serveJsonServer };
await servers[which]?.();

function say(port) {
  process.stdout.write(`A peer serves http://127.0.0.1:${port}\n`);
}

/** Verifies a token at each request, and syncs a create before it responds, as SQLite does in WAL mode. */
async function serveFastify() {
  const [{ default: fastify }, { default: jwt }, { default: Database }] = await Promise.all([
    import('fastify'),
    import('@fastify/jwt'),
    import('better-sqlite3'),
  ]);
  for (const ending of ['', '-wal', '-shm']) rmSync(`items.db${ending}`, { force: true });
  const database = new Database('items.db');
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL)');
  database.exec('CREATE INDEX prices ON items (price DESC, id)');
  const insert = database.prepare('INSERT INTO items (name, price) VALUES (?, ?)');
  const { items: given } = JSON.parse(readFileSync(items, 'utf8'));
  database.transaction(() => given.forEach(({ name, price }) => insert.run(name, price)))();
  const one = database.prepare('SELECT id, name, price FROM items WHERE id = ?');
  const columns = 'SELECT id, name, price FROM items';
  const all = database.prepare(`${columns} ORDER BY id`);
  const after = database.prepare(`${columns} WHERE id > ? ORDER BY id LIMIT ?`);
  const byNumber = database.prepare(`${columns} ORDER BY id LIMIT ? OFFSET ?`);
  const byPrice = database.prepare(`${columns} ORDER BY price DESC, id LIMIT ?`);
  const dear = database.prepare(`${columns} WHERE price >= ? ORDER BY id LIMIT ?`);
  const search = database.prepare(`${columns} WHERE name LIKE ? ORDER BY id LIMIT ?`);
  const list = (query) => {
    const limit = Number(query.limit);
    if (query.limit === undefined) return all.all();
    if (query.q !== undefined) return search.all(`%${query.q}%`, limit);
    if (query.sort === '-price') return byPrice.all(limit);
    if (query['price:gte'] !== undefined) return dear.all(Number(query['price:gte']), limit);
    if (query.offset !== undefined) return byNumber.all(limit, Number(query.offset));
    return after.all(Number(query.after ?? 0), limit);
  };

  const app = fastify({ logger: false });
  await app.register(jwt, { secret });
  const onRequest = (request) => request.jwtVerify();
  const item = {
    type: 'object',
    properties: { id: { type: 'integer' }, name: { type: 'string' }, price: { type: 'number' } },
  };
  const body = {
    type: 'object',
    required: ['name', 'price'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 200 },
      price: { type: 'number', minimum: 0, maximum: 1e12 },
    },
  };
  app.post('/tokens', () => app.jwt.sign({ userId: 1, role: 'admin' }, { expiresIn: 900 }));
  app.get('/items/:id', { onRequest, schema: { response: { 200: item } } }, ({ params }) =>
    one.get(Number(params.id)),
  );
  app.get(
    '/items',
    { onRequest, schema: { response: { 200: { type: 'array', items: item } } } },
    ({ query }) => list(query),
  );
  app.post('/items', { onRequest, schema: { body, response: { 201: item } } }, (request, reply) => {
    const { name, price } = request.body;
    reply.code(201);
    return { id: Number(insert.run(name, price).lastInsertRowid), name, price };
  });
  say(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port);
}

/** Translates our parameters to its own. It writes its file after it has responded. */
async function serveJsonServer() {
  const { default: jsonServer } = await import('json-server');
  copyFileSync(items, 'db.json');
  const app = jsonServer.create();
  app.post('/tokens', (_, reply) => reply.send('none'));
  app.use(
    jsonServer.rewriter({
      '/items\\?limit=20': '/items?_limit=20',
      '/items\\?limit=20&after=40': '/items?_start=40&_limit=20',
      '/items\\?limit=20&offset=40': '/items?_start=40&_limit=20',
      '/items\\?limit=20&sort=-price': '/items?_limit=20&_sort=price&_order=desc',
      '/items\\?limit=20&price:gte=500': '/items?_limit=20&price_gte=500',
      '/items\\?q=9876&limit=20': '/items?q=9876&_limit=20',
    }),
  );
  app.use(jsonServer.bodyParser);
  app.use(jsonServer.router('db.json'));
  const server = app.listen(0, '127.0.0.1', () => say(server.address().port));
}
