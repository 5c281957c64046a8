import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startCairn, testEnvironment, loaderFlags, startProcess, temporaryDirectory } from '../support/cli/spawn.ts';
import { projectDirectory } from '../support/source.ts';

const examples = join(projectDirectory, 'src', 'docs', 'examples');

/** As it stands where Node.js or tsx reads TypeScript, and built where these tests are. */
const ending = extname(import.meta.filename);
const builtExamples = join(import.meta.dirname, '..', '..', 'src', 'docs', 'examples');
const entrance = pathToFileURL(join(import.meta.dirname, '..', '..', 'src', `index${ending}`)).href;

async function serve(t: TestContext, file: string): Promise<string> {
  const words = ['serve', '--collections', join(examples, file), '--data', join(temporaryDirectory(t), 'data')];
  const server = startCairn(t, [...words, '--registration', 'open', '--port', '0', '--log', 'none']);
  const [, origin = ''] = await server.find(/^Cairn serves (http:\S+)$/m);
  return origin;
}

/** Runs a script to its end, and returns its lines. */
async function linesOf(t: TestContext, script: string, environment: NodeJS.ProcessEnv): Promise<string[]> {
  const shell = startProcess(t, [script], environment, 'sh');
  assert.equal(await shell.ended, 0, shell.err);
  return shell.out.trim().split('\n');
}

test('the requests of the shop show who may do what with an order', async (t) => {
  const environment = { ORIGIN: await serve(t, 'shop.json'), PASSWORD: testEnvironment.CAIRN_ADMIN_PASSWORD };
  const lines = await linesOf(t, join(examples, 'shop.sh'), environment);
  assert.deepEqual(lines.map((line) => line.slice(0, 3)), [
    '201', '200', '201', '201', // accounts, and a clerk
    '201', '200', '403', // products
    '201', '201', '201', '200', // an order of two lamps
    '422', '404', '200', // its state is the clerk's, and others do not see it
    '200', '200',
  ], lines.join('\n'));
  assert.match(lines[10] ?? '', /"quantity":2,"product":\{"id":1,"name":"Lamp","price":24\.5\}/);
  assert.equal(lines[13], '200 []');
  assert.match(lines[14] ?? '', /^200 \[\{"id":1,"status":"open","customer":\{.*"lines":\[\{.*"quantity":2\}\]\}\]$/);
  assert.match(lines[15] ?? '', /"status":"shipped"/);
});

test('with a wrong password, the requests of the shop end with the reason', async (t) => {
  const environment = { ORIGIN: await serve(t, 'shop.json'), PASSWORD: 'wrong' };
  const shell = startProcess(t, [join(examples, 'shop.sh')], environment, 'sh');
  assert.notEqual(await shell.ended, 0);
  assert.equal(shell.out, '');
  assert.match(shell.err, /e-mail address or the password is wrong/);
});

test('a private to-do list is seen by nobody else', async (t) => {
  const origin = await serve(t, 'private-todos.json');
  const send = async (path: string, token?: string, body?: object) => {
    const headers = { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) };
    const init = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    const answer = await fetch(origin + path, init);
    return { status: answer.status, body: Object(await answer.json()) };
  };
  const tokenOf = async (name: string): Promise<string> => {
    const account = { email: `${name}@example.org`, password: `a password of ${name} alone` };
    assert.equal((await send('/users', undefined, { name, ...account })).status, 201);
    return (await send('/tokens', undefined, account)).body.access_token;
  };
  const [mia, ben] = [await tokenOf('mia'), await tokenOf('ben')];
  assert.equal((await send('/todos', mia, { title: 'Call Ben' })).status, 201);
  assert.deepEqual((await send('/todos', ben)).body, []);
  assert.equal((await send('/todos/1', ben)).status, 404);
  assert.deepEqual((await send('/todos', mia)).body, [{ id: 1, title: 'Call Ben', done: false }]);
});

test('the tests of the checkout pass, and notice when stock is not taken', (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  const write = (file: string, from: string, to: string): void => {
    const code = readFileSync(join(builtExamples, file + ending), 'utf8');
    assert.ok(code.includes(from), `${file} has "${from}"`);
    const local = code.replaceAll("'cairn-api'", JSON.stringify(entrance)).replace(/\n\/\/# sourceMapping.*/, '');
    writeFileSync(join(directory, file + ending), local.replaceAll(from, to));
  };
  const runTests = (): number | null => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const translator = ending === '.ts' && loaderFlags.length > 0 ? ['--import', import.meta.resolve('tsx')] : [];
    const words = [...translator, '--test', join(directory, `checkout-test.example${ending}`)];
    return spawnSync(process.execPath, words, { cwd: directory, env, encoding: 'utf8' }).status;
  };
  const taken = 'stock: product.stock - quantity';
  write('checkout-test.example', 'openShop', 'openShop');
  write('checkout.example', taken, taken);
  assert.equal(runTests(), 0);
  write('checkout.example', taken, 'stock: product.stock');
  assert.equal(runTests(), 1);
});

test('the front end of json-server reads and writes a db.json that Cairn serves', async (t) => {
  const directory = temporaryDirectory(t);
  cpSync(join(examples, 'front-end'), directory, { recursive: true });
  const server = startCairn(t, [join(directory, 'db.json'), '--port', '0', '--log', 'none'], {});
  const [, origin = ''] = await server.find(/^Cairn serves (http:\S+)$/m);
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  const script = join(directory, 'posts.js');
  writeFileSync(script, readFileSync(script, 'utf8').replace('http://localhost:3000', origin));
  const page: ReturnType<typeof Object> = await import(pathToFileURL(script).href);
  const { profile, posts } = await page.loadPage();
  assert.equal(profile.name, 'Ada');
  assert.deepEqual(posts.map(({ title }: { title: string }) => title), ['Goodbye', 'Hello']);
  const { id } = await page.addPost('New');
  await page.readPost(id, 300);
  await page.addComment(id, 'the first');
  assert.deepEqual((await page.loadPage()).posts[0], {
    id, title: 'New', views: 300, comments: [{ id: 2, text: 'the first', postId: id }],
  });
  await page.removePost(id);
  assert.equal((await page.loadPage()).posts.length, 2);
  server.child.kill('SIGTERM');
  await once(server.child, 'exit');
});
