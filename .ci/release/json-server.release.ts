/**
 * Sends the same requests to json-server itself, both versions, as to Cairn with `--dialect json-server`, if npm has
 * them. Differences are listed with their reasons; a reason without a difference is also a mistake.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { declareCollection } from '../../src/collections/define.ts';
import { startCairn, temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { projects } from './projects.ts';
import { loadPackages, type Load } from '../../test/support/handbook.ts';
import { createApp } from '../../test/support/inside.ts';

const data = {
  posts: [
    { id: 1, title: 'A first post', views: 100, author: { name: 'Ada', city: 'Rome' }, tags: ['red'], public: true },
    { id: 2, title: 'b second', views: 20, author: { name: 'Mia' }, tags: ['red', 'blue'], public: false },
    { id: 3, title: 'C third (old)', views: 3, rating: null },
    { id: 4, title: 'a first again', views: 20, date: '2021-05-01' },
  ],
  comments: [
    { id: 1, body: 'nice', postId: 1 }, { id: 2, body: 'so so', postId: 1 }, { id: 3, body: 'nice', postId: 2 },
  ],
  likes: [{ id: 1, commentId: 1 }, { id: 2, commentId: 3 }],
  empty: [],
};

/** A request, and why its response differs from Cairn's, if it does. */
type Row = readonly [request: string, why?: string];

const problem = 'an error is problem details, with what is wrong and what is allowed';
const refused = 'what cannot be meant is refused, not passed over';

/** Requests of a client of 0.17. Their order counts, because later ones read what earlier ones write. */
const old: readonly Row[] = [
  ['GET /posts'], ['GET /posts/1'], ['GET /posts/99', problem], ['GET /posts/1?nothing=1'],
  ['GET /posts?_sort=views'], ['GET /posts?_sort=views,title&_order=desc,asc'],
  ['GET /posts?_sort=author.name&_order=DESC'], ['GET /posts?_sort=nothing'],
  ['GET /empty?_sort=nothing&_order=ASC&_start=0&_end=10'],
  ['GET /posts?_start=1&_end=3'], ['GET /posts?_start=1&_limit=2'], ['GET /posts?_limit=2'], ['GET /posts?_limit=0'],
  ['GET /posts?_start=2'], ['GET /posts?_start=10&_end=20'], ['GET /posts?_end=2000'],
  ['GET /posts?_limit=abc', refused], ['GET /posts?_limit=-1', refused],
  ['GET /posts?_page=1&_limit=2'], ['GET /posts?_page=2&_limit=2'], ['GET /posts?_page=1&_limit=1&views=20'],
  ['GET /posts?_page=3&_limit=2'], ['GET /posts?_page=1'],
  ['GET /posts?_page=0&_limit=3', 'its links name the page 0 each time'],
  ['GET /posts?title=b+second'], ['GET /posts?views=20'], ['GET /posts?views=20&views=3'], ['GET /posts?id=1&id=3'],
  ['GET /posts?id=1&id=3&_sort=id&_order=desc'], ['GET /posts?public=true'], ['GET /posts?author.name=Ada'],
  ['GET /posts?nothing=1'], ['GET /posts?views='], ['GET /posts?views=abc'], ['GET /posts?rating=null'],
  ['GET /posts?_=1700000000000'],
  ['GET /posts?tags=red', 'it joins a list with commas and compares the text; here tags:has=red'],
  ['GET /posts?views_gte=20'], ['GET /posts?views_gte=20&views_lte=50'], ['GET /posts?views_ne=20'],
  ['GET /posts?title_like=FIRST'], ['GET /posts?title_like=first&title_like=third'], ['GET /posts?tags_like=blu'],
  ['GET /posts?title_like=^a', 'the text of _like is no regular expression'],
  ['GET /posts?views_like=2', 'a text is found in texts, not in the digits of a number'],
  ['GET /posts?date_gte=2021'], ['GET /posts?rating_ne=5'], ['GET /posts?nothing_gte=1'],
  ['GET /posts?id_ne=1&id_ne=2'],
  ['GET /posts?author.name_like=ad'], ['GET /posts?author.name_gte=B'], ['GET /posts?author.name_ne=Ada'],
  ['GET /posts?q=first'], ['GET /posts?q=MIA'], ['GET /posts?q='],
  ['GET /posts?q=20', 'a text is found in texts, not in the digits of a number'],
  ['GET /posts?_embed=comments'], ['GET /posts/1?_embed=comments'], ['GET /comments?_expand=post'],
  ['GET /comments/1?_expand=post'], ['GET /posts?_embed=comments&_limit=1'], ['GET /likes?_expand=comment&_sort=id'],
  ['GET /posts?_embed=unknown', refused], ['GET /comments?_expand=unknown', refused],
  ['GET /posts/1/comments'], ['GET /posts/1/comments?_sort=id&_order=desc&_limit=1'],
  ['GET /posts/99/comments'], ['GET /posts/1/empty'],
  ['POST /posts {"title":"new"}'], ['POST /empty {}'], ['POST /posts/1/comments {"body":"nested","postId":9}'],
  ['POST /posts {"id":77,"title":"x"}', 'a collection of integers that the server makes takes no given id'],
  ['PUT /posts/2 {"title":"put"}'], ['PUT /posts/2 {"id":9,"title":"put"}'],
  ['PUT /posts/99 {"title":"none"}', problem],
  ['PATCH /posts/1 {"views":null}'], ['PATCH /posts/1 {"author":{"city":"Paris"}}'],
  ['PATCH /posts/1 {"more":{"a":1}}'], ['PATCH /posts/1 {"id":5}'], ['GET /posts/1'],
  ['DELETE /posts/99', problem], ['DELETE /posts/1'], ['GET /comments'],
  ['GET /likes', 'it takes what refers to a comment that went along only with the next removal'],
  ['DELETE /likes/2'], ['GET /likes'],
];

const text17 = 'a list is the array of 0.17 unless _per_page asks for an envelope';
const made = 'it makes a random id';
const listed = 'a parameter of 0.17 is known';

/** Requests of a client of 1.0. */
const now: readonly Row[] = [
  ['GET /posts'], ['GET /posts/1'], ['GET /posts/99', problem],
  ['GET /posts?_sort=views'], ['GET /posts?_sort=-views'], ['GET /posts?_sort=-views,title'],
  ['GET /posts?_page=1&_per_page=3'], ['GET /posts?_page=2&_per_page=3'], ['GET /posts?_page=9&_per_page=3'],
  ['GET /empty?_page=1&_per_page=3'], ['GET /posts?_page=1', text17],
  ['GET /posts?title=b+second'], ['GET /posts?views=20'], ['GET /posts?public=true'], ['GET /posts?views=abc'],
  ['GET /posts?author.name=Ada', 'it reads the dot as a part of an operator'],
  ['GET /posts?nothing=1', 'a name that no record has is passed over, as by 0.17'],
  ['GET /posts?views:gt=20'], ['GET /posts?views:lt=20'], ['GET /posts?views:gte=20'], ['GET /posts?views:lte=20'],
  ['GET /posts?views:eq=20'], ['GET /posts?views:ne=20'], ['GET /posts?views:in=3,100'], ['GET /posts?views_gte=20'],
  ['GET /posts?title:contains=FIRST'], ['GET /posts?title:startsWith=C'], ['GET /posts?title:endsWith=post'],
  ['GET /posts?title:startsWith=c', 'startsWith and endsWith compare with regard to case'],
  ['GET /posts?title_like=first', listed], ['GET /posts?q=first', listed],
  ['GET /posts?_where={"views":{"gt":20}}', 'conditions are written as filters'],
  ['GET /posts?_embed=unknown', refused],
  ['POST /posts {"title":"new"}', made],
  ['PUT /posts/2 {"title":"put"}'], ['PUT /posts/2 {"id":9,"title":"put"}'],
  ['PATCH /posts/1 {"views":null}'], ['PATCH /posts/1 {"author":{"city":"Paris"}}'], ['GET /posts/1'],
  ['DELETE /posts/1', 'it answers with the record; the answer is that of 0.17'],
  ['GET /comments', 'it sets what refers to null; here it goes, as with 0.17'],
];

type File = Readonly<Record<string, unknown>>;

async function serveOld(load: Load, file: File = data): Promise<Server> {
  const { default: jsonServer } = await load('json-server/lib/server/index.js');
  const app = jsonServer.create();
  app.use(jsonServer.bodyParser, jsonServer.router(structuredClone(file)));
  return app.listen(0, '127.0.0.1');
}

/** Its ids and references are texts, even in its file. */
async function serveNow(load: Load, file: File = data): Promise<Server> {
  const { createApp: create } = await load('json-server/lib/app.js');
  const state = JSON.parse(JSON.stringify(file), (name, value: unknown) =>
    isId(name) && value !== null ? String(value) : value);
  return create({ data: state, write: async () => undefined }).listen(0, undefined, '127.0.0.1');
}

const isId = (name: string): boolean => /^id$|Id$/.test(name);

async function serveCairn(t: TestContext): Promise<number> {
  const collections = Object.keys(data).map((name) => declareCollection({ name, fields: {}, additional: true }));
  const only = { auth: 'none', users: false, items: false } as const;
  const app = await createApp({ ...only, dialect: 'json-server', collections });
  t.after(app.close);
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  for (const [name, records] of Object.entries(data))
    for (const record of records) {
      const { status } = await ask(port, `POST /${name} ${JSON.stringify(record)}`);
      assert.equal(status, 201);
    }
  return port;
}

/** Ids are compared as texts, and addresses without the port. */
async function ask(port: number, request: string) {
  const [, method = '', target = '', body] = /^(\w+) ([^ ]+)(?: (.*))?$/.exec(request) ?? [];
  const sent = body === undefined ? {} : { body, headers: { 'Content-Type': 'application/json' } };
  const reply = await fetch(`http://127.0.0.1:${port}${target}`, { method, ...sent });
  const text = await reply.text();
  const isJson = reply.headers.get('content-type')?.includes('json') === true && text !== '';
  const json: unknown = JSON.parse(isJson ? text : 'null', (name, value: unknown) =>
    isId(name) && value !== null ? String(value) : value);
  const { headers, status } = reply;
  const link = (headers.get('link') || undefined)?.replaceAll(`http://127.0.0.1:${port}`, '');
  return { status, json, parts: [headers.get('x-total-count'), link] };
}

for (const [version, rows, serve] of [['0.17.4', old, serveOld], ['1.0.0-beta.15', now, serveNow]] as const) {
  test(`Cairn responds like json-server ${version}, apart from the listed differences`, async (t) => {
    const load = loadPackages(t, { 'json-server': version });
    if (load === undefined) return;
    const server = await serve(load);
    t.after(() => void server.close());
    if (!server.listening) await once(server, 'listening');
    const address = server.address();
    const theirs = typeof address === 'object' && address !== null ? address.port : 0;
    const ours = await serveCairn(t);
    for (const [request, why] of rows) {
      const { parts, ...expected } = await ask(theirs, request);
      const { parts: found, ...answer } = await ask(ours, request);
      // Version 1.0 has neither field.
      const same = version === '0.17.4' ? [{ ...answer, found }, { ...expected, found: parts }] : [answer, expected];
      if (why === undefined) assert.deepEqual(same[0], same[1], request);
      else {
        assert.notDeepEqual(same[0], same[1], `${request} does not differ: ${why}`);
        t.diagnostic(`${request} differs: ${why}`);
      }
    }
  });
}

/** Why responses to the projects differ. A row that explains nothing is a mistake. */
type Difference = readonly [why: string, isMeant: (request: string) => boolean];
const asked = (pattern: RegExp) => (request: string) => pattern.test(request);

const fromOld: readonly Difference[] = [
  ['_per_page asks for the envelope of 1.0', asked(/_per_page/)],
  ['a record that is not there is told of in problem details', asked(/notes\/[29]$/)],
  ['a single resource is set by PUT, not by POST', asked(/^POST \/settings/)],
  ['null refers to nothing, and is no failure', asked(/comments\?_expand=comment/)],
];

const fromNow: readonly Difference[] = [
  ['the paths below a record are those of 0.17', asked(/^\w+ \/[^/?]+\/[^/?]+\/\w+|comments\?postId=2/)],
  ['_expand, _like and q are known, as in 0.17', asked(/_expand|_like|[?&]q=/)],
  ['_order is known, as in 0.17', asked(/_order/)],
  ['a list is the array of 0.17 unless _per_page asks for an envelope', asked(/_page=\d+(?!.*_per_page)/)],
  ['_start alone ends nothing', asked(/_start=20$/)],
  ['a member that comes twice means one of the values', asked(/id=1&id=3/)],
  ['texts have bounds, too', asked(/born_gte|start_[gl]te/)],
  ['null equals no text', asked(/commentId=1$/)],
  ['PATCH of a single resource assigns its members', asked(/^PATCH \/(?:en|settings)|^GET \/(?:en\?|settings)/)],
  ['a single resource is set by PUT, not by POST', asked(/^POST \/settings/)],
  ['DELETE answers {} and takes what refers to the record', asked(/^DELETE/)],
  ['what refers to a record went with it', asked(/^GET \/(?:comments|reviews|powers|pets|addresses)$/)],
  ['ids are made as by 0.17: the highest and one more', asked(/^GET \/notes\/1$/)],
  ['the case of a name in a path is passed over, as by 0.17', asked(/^GET \/posts$/)],
  ['a record that is not there is told of in problem details', asked(/notes\/[29]$/)],
];

/** Replaces ids that a server made, and compares only the status of errors. */
function comparable({ status, json }: Awaited<ReturnType<typeof ask>>, given: ReadonlySet<string>) {
  const text = JSON.stringify(json, (name, value: unknown) =>
    name === 'id' && !given.has(String(value)) ? 'made' : value);
  return { status, json: JSON.parse(text ?? 'null') };
}

function idsIn(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  JSON.stringify(value, (name, each: unknown) => {
    if (name === 'id') found.add(String(each));
    return each;
  });
  return found;
}

async function portOf(t: TestContext, server: Server): Promise<number> {
  t.after(() => void server.close());
  if (!server.listening) await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

for (const [version, differences] of [['0.17.4', fromOld], ['1.0.0-beta.3', fromNow]] as const) {
  test(`files and front ends of ${Object.keys(projects).length} projects work as with json-server ${version}`, async (t) => {
    const load = loadPackages(t, { 'json-server': version });
    if (load === undefined) return;
    const serve = version === '0.17.4' ? serveOld : serveNow;
    const used = new Set<string>();
    const unexplained: string[] = [];
    for (const [name, { file, requests }] of Object.entries(projects)) {
      const theirs = await portOf(t, await serve(load, file));
      const path = join(temporaryDirectory(t), 'db.json');
      writeFileSync(path, JSON.stringify(file));
      const running = startCairn(t, [path, '--port', '0', '--log', 'none'], {});
      const [, port = ''] = await running.find(/^Cairn serves http:\S+:(\d+)$/m);
      for (const request of requests) {
        const [ours, expected] = [await ask(Number(port), request), await ask(theirs, request)];
        const same = [ours, expected].map((answer) => comparable(answer, idsIn(file)));
        if (isDeepStrictEqual(same[0], same[1])) continue;
        const [why] = differences.find(([, isMeant]) => isMeant(request)) ?? [];
        if (why === undefined) unexplained.push(`${name}: ${request}: ${JSON.stringify(same)}`);
        else used.add(why);
      }
      running.child.kill();
      await running.ended;
    }
    assert.deepEqual(unexplained, []);
    assert.deepEqual(
      differences.map(([why]) => why).filter((why) => !used.has(why)),
      [],
    );
    for (const why of used) t.diagnostic(`differs: ${why}`);
  });
}
