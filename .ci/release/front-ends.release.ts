/**
 * Front ends of react-admin and refine as tutorials build them, in the published packages. They are 335 MB, whose
 * newest parts npm chooses anew each time, so they are run by hand:
 * `CAIRN_FRONT_ENDS=1 npm run test:release -- front-ends`.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { startCairn, temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { loadPackages, loadReferenceFile, type Load, type Loaded, startBlog } from '../../test/support/handbook.ts';
import { openWindow, waitFor, typeText, type Page } from './window.ts';

const skip = process.env['CAIRN_FRONT_ENDS'] === undefined && 'CAIRN_FRONT_ENDS=1 runs it: see above';

interface Browser {
  readonly load: Load;
  readonly window: Page;
}

const posts = ['First', 'Second', 'Third'].map((title, index) => ({ title, views: index + 1, userId: 1 }));

/** Posts of users: a list with a search, a form to edit and one to create. */
function frontEnd(react: Loaded, admin: Loaded, providers: object): unknown {
  const { createElement: h } = react;
  const { Admin, Create, DataTable, Edit, List, ReferenceField, ReferenceInput, Resource } = admin;
  const { SimpleForm, TextInput } = admin;
  const column = (source: string) => h(DataTable.Col, { source, key: source });
  const search = [h(TextInput, { source: 'q', key: 'q', label: 'Search', alwaysOn: true })];
  const PostList = () => h(List, { filters: search, sort: { field: 'views', order: 'DESC' } }, h(DataTable, null,
    column('title'), column('views'),
    h(DataTable.Col, { source: 'userId' }, h(ReferenceField, { source: 'userId', reference: 'users' }))));
  const inputs = () => [
    h(TextInput, { source: 'title', key: 'title' }),
    h(ReferenceInput, { source: 'userId', reference: 'users', key: 'user' }),
  ];
  const PostEdit = () => h(Edit, { mutationMode: 'pessimistic' }, h(SimpleForm, null, inputs()));
  const PostCreate = () => h(Create, null, h(SimpleForm, null, inputs()));
  const UserList = () => h(List, null, h(DataTable, null, column('name'), column('email')));
  return h(Admin, { ...providers, store: admin.memoryStore(), disableTelemetry: true },
    h(Resource, { name: 'posts', list: PostList, edit: PostEdit, create: PostCreate }),
    h(Resource, { name: 'users', list: UserList, recordRepresentation: 'name' }));
}

/** Opens the front end, and returns a person's actions. */
async function visit(t: TestContext, { load, window }: Browser, providers: object, path = '/posts') {
  const { default: react } = await load('react/index.js');
  const { default: { createRoot } } = await load('react-dom/client.js');
  const admin = await load('react-admin/dist/index.js');
  const { document } = window;
  window.location.hash = `#${path}`;
  const root = createRoot(document.getElementById('root'));
  root.render(frontEnd(react, admin, providers));
  t.after(() => root.unmount());
  const all = (selector: string): Page[] => [...document.querySelectorAll(selector)];
  const field = (name: string) => waitFor(window, name, () => all(`[name="${name}"]`)[0]);
  const labelled = (label: string) => waitFor(window, label, () => all('button, a').find((each) =>
    !each.disabled && [each.textContent, each.getAttribute('aria-label')].includes(label)));
  return {
    text: (wanted: string) => waitFor(window, wanted, () => document.body.textContent.includes(wanted)),
    rows: (...wanted: readonly string[]) => waitFor(window, wanted.join(', '), () => {
      const found = all('tbody tr').map((row) => row.querySelectorAll('td')[1]?.textContent);
      return JSON.stringify(found) === JSON.stringify(wanted);
    }),
    row: async (title: string) => (await waitFor(window, title, () =>
      all('tbody td').find((cell) => cell.textContent === title))).click(),
    press: async (label: string) => (await labelled(label)).click(),
    type: async (name: string, value: string) => typeText(window, await field(name), value),
    select: async (title: string) => (await waitFor(window, title, () => all('tbody tr')
      .find((row) => row.textContent.includes(title))?.querySelector('input'))).click(),
  };
}

/** A look at the list, a search, a change, a new post and a removal. */
async function work(page: Awaited<ReturnType<typeof visit>>): Promise<void> {
  await page.rows('Third', 'Second', 'First');
  await page.text('Ada');
  await page.text('1-3 of 3');
  await page.type('q', 'SECOND');
  await page.rows('Second');
  await page.type('q', '');
  await page.rows('Third', 'Second', 'First');
  await page.row('Second');
  await page.type('title', 'Changed');
  await page.press('Save');
  await page.rows('Third', 'Changed', 'First');
  await page.select('First');
  await page.press('Delete');
  await page.rows('Third', 'Changed');
  await page.press('Create');
  await page.type('title', 'Made');
  await page.press('Save');
}

test('a front end of react-admin runs', { skip }, async (t) => {
  const packages = { 'react-admin': '5.15.4', 'ra-data-json-server': '5.15.3', react: '18.3.1', 'react-dom': '18.3.1' };
  const load = loadPackages(t, { ...packages, jsdom: '26.1.0' });
  if (load === undefined) return;
  const browser = { load, window: await openWindow(load) };
  t.after(() => browser.window.close());

  await t.test('for json-server, against `cairn db.json`', async (t) => {
    const file = join(temporaryDirectory(t), 'db.json');
    const withIds = posts.map((post, index) => ({ id: index + 1, ...post }));
    writeFileSync(file, JSON.stringify({ posts: withIds, users: [{ id: 1, name: 'Ada' }] }));
    const [, api = ''] = await startCairn(t, [file, '--port', '0', '--log', 'none'], {}).find(
      /^Cairn serves (http:\S+)$/m,
    );
    const { default: provide } = await load('ra-data-json-server/dist/index.js');
    const page = await visit(t, browser, { dataProvider: provide(api) });
    await work(page);
    await page.text('Post Made');
  });

  await t.test('with signing in, and the providers of the reference', async (t) => {
    const { client, credentials } = await startBlog(t);
    const { reactAdmin } = await loadReferenceFile(t, 'cairn-react-admin.js');
    await client.signIn(credentials.email, credentials.password);
    await client.call('PATCH', '/users/1', { name: 'Ada' });
    for (const post of posts) await client.call('POST', '/posts', post);
    await client.signOut();
    const page = await visit(t, browser, reactAdmin(client), '/login');
    await page.type('username', credentials.email);
    await page.type('password', credentials.password);
    await page.press('Sign in');
    await work(page);
    await page.text('Post Made');
    await page.type('title', 'x'.repeat(201));
    await page.press('Save');
    await page.text('must be at most 200 characters long');
  });
});

/** Posts behind a sign-in: pages, a filter, and a button that creates one. */
function refinedFrontEnd({ createElement: h, useState }: Loaded, core: Loaded, providers: object): unknown {
  const { Authenticated, Refine, useCreate, useLogin, useTable } = core;
  const Login = () => {
    const { mutate } = useLogin();
    const [email, setEmail] = useState('');
    const [password, setPassword] = useState('');
    const input = (name: string, set: (value: string) => void) =>
      h('input', { name, onChange: ({ target }: { target: { value: string } }) => set(target.value) });
    const enter = h('button', { onClick: () => mutate({ email, password }) }, 'Enter');
    return h('div', null, input('email', setEmail), input('password', setPassword), enter);
  };
  const Posts = () => {
    const sorters = { initial: [{ field: 'views', order: 'desc' }] };
    const pagination = { pageSize: 2 };
    const table = useTable({ resource: 'posts', pagination, sorters, syncWithLocation: false });
    const { mutate, mutation } = useCreate();
    const { data, total } = table.result;
    const titles = data.map(({ title }: { title: string }) => title).join(', ');
    const make = (title: string) => () => mutate({ resource: 'posts', values: { title } });
    const find = () => {
      table.setCurrentPage(1);
      table.setFilters([{ field: 'title', operator: 'contains', value: 'ir' }]);
    };
    const button = (label: string, onClick: () => void) => h('button', { onClick }, label);
    return h('div', null, `${titles} of ${total ?? 0}; ${mutation.error?.errors?.title ?? ''}`,
      button('Next', () => table.setCurrentPage(2)), button('Find', find),
      button('Wrong', make('')), button('Make', make('Third, again')));
  };
  const resources = [{ name: 'posts' }];
  return h(Refine, { ...providers, resources, options: { disableTelemetry: true } },
    h(Authenticated, { key: 'posts', fallback: h(Login) }, h(Posts)));
}

test('a front end of refine signs in with the providers in the manual', { skip }, async (t) => {
  const packages = { '@refinedev/core': '5.0.12', '@tanstack/react-query': '5.108.4' };
  const load = loadPackages(t, { ...packages, react: '18.3.1', 'react-dom': '18.3.1', jsdom: '26.1.0' });
  if (load === undefined) return;
  const window = await openWindow(load);
  t.after(() => window.close());
  const { client, credentials } = await startBlog(t);
  const { refine } = await loadReferenceFile(t, 'cairn-refine.js');
  await client.signIn(credentials.email, credentials.password);
  for (const post of posts) await client.call('POST', '/posts', post);
  await client.signOut();
  const { default: react } = await load('react/index.js');
  const { default: { createRoot } } = await load('react-dom/client.js');
  const { document } = window;
  const root = createRoot(document.getElementById('root'));
  root.render(refinedFrontEnd(react, await load('@refinedev/core/dist/index.mjs'), refine(client)));
  t.after(() => root.unmount());
  const text = (wanted: string) => waitFor(window, wanted, () => document.body.textContent.includes(wanted));
  const field = (name: string) => waitFor(window, name, () => document.querySelector(`[name="${name}"]`) ?? undefined);
  const press = async (label: string) => (await waitFor(window, label, () =>
    [...document.querySelectorAll('button')].find(({ textContent }) => textContent === label))).click();
  for (const name of ['email', 'password'] as const) typeText(window, await field(name), credentials[name]);
  await press('Enter');
  await text('Third, Second of 3');
  await press('Next');
  await text('First of 3');
  await press('Wrong');
  await text('must be at least 1 character long');
  await press('Find');
  await text('Third, First of 2');
  await press('Make');
  await text('Third, First of 3');
});
