/** Files as front ends bring them that were written for json-server: small ones of every shape. */

const nested = (depth: number): unknown => (depth === 0 ? 'deep' : { in: nested(depth - 1), list: [depth] });
const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));
const iso = (day: number): string => new Date(Date.UTC(2026, 0, day)).toISOString();
const kanban = (id: string, cards: number) => ({
  id, title: `Column ${id}`,
  cards: many(cards, (n) => ({ id: `${id}-${n}`, text: `Card ${n}`, labels: ['bug', 'ui'] })),
});

/** The files by name. Their ids are valid and unique, and their names are valid names of collections. */
export const corpus: Readonly<Record<string, unknown>> = {
  todos: { todos: [{ id: 1, title: 'Read', completed: false }, { id: 2, title: 'Write', completed: true }] },
  todosOfTexts: { todos: [{ id: 'b7a1', title: 'Read', done: false }, { id: '2f0c', title: '', done: true }] },
  blog: {
    posts: [{ id: 1, title: 'json-server', author: 'typicode' }],
    comments: [{ id: 1, body: 'some comment', postId: 1 }],
    profile: { name: 'typicode' },
  },
  blogOfTexts: {
    posts: [{ id: '1', title: 'a title', views: 100 }, { id: '2', title: 'another title', views: 200 }],
    comments: [{ id: '1', text: 'a comment about post 1', postId: '1' }], profile: { name: 'typicode' },
  },
  shop: {
    products: [
      { id: 'p-1', name: 'Lamp', price: 24.5, images: ['/a.png', '/b.png'], rating: { rate: 3.9, count: 120 } },
      { id: 'p-2', name: 'Desk', price: 90, images: [], rating: { rate: 4, count: 0 }, discount: null },
    ],
    cart: [], orders: [{ id: 1, items: [{ productId: 'p-1', quantity: 2 }], total: 49, at: iso(3) }],
  },
  kanban: { columns: [kanban('todo', 3), kanban('done', 0)], order: ['todo', 'done'] },
  quiz: {
    questions: many(3, (n) => ({
      id: n, question: `What is ${n}?`, options: ['a', 'b', 'c'], correctOption: n % 3, points: 10 * n,
    })),
  },
  quizAtTheTop: [
    { id: 0, question: 'Who?', options: [1, 'two', null] }, { id: 1, question: 'Where?', options: [] },
  ],
  hotels: {
    hotels: [
      { id: 7, name: 'Ritz', address: { city: 'Paris', geo: { lat: 48.868, lng: 2.329 } }, stars: 5, rooms: [] },
    ],
    bookings: [{ id: 'x', hotelId: 7, from: '2026-02-01', to: '2026-02-03', guests: [{ name: 'Ada', age: 36 }] }],
  },
  placeholder: {
    users: many(3, (n) => ({
      id: n + 1, name: `User ${n}`, username: `u${n}`, email: `u${n}@example.org`, phone: '1-770-736-8031 x56442',
      address: { street: 'Kulas Light', suite: 'Apt. 556', geo: { lat: '-37.3159', lng: '81.1496' } },
      company: { name: 'Romaguera', catchPhrase: 'Multi-layered', bs: 'harness' },
    })),
    posts: many(20, (n) => ({ userId: (n % 3) + 1, id: n + 1, title: `t${n}`, body: `a\nb ${n}` })),
    albums: many(5, (n) => ({ userId: 1, id: n + 1, title: `album ${n}` })),
  },
  accounts: {
    users: [{ id: 1, email: 'a@b.c', password: '$2b$10$abc', role: 'admin' }], sessions: [], tokens: [{ id: 't' }],
  },
  courses: {
    courses: [{ id: 'c1', slug: 'react', modules: [{ title: 'Intro', lessons: [{ title: 'JSX', minutes: 12 }] }] }],
    authors: [{ id: 1, name: 'Cory House' }, { id: 2, name: 'Dan Wahlin' }],
  },
  dates: { events: many(4, (n) => ({ id: 1_700_000_000_000 + n * 86_400_000, at: iso(n + 1), when: '2026-01-01' })) },
  datesBackwards: { events: many(4, (n) => ({ id: 1_700_000_000_000 - n * 86_400_000, title: `e${n}` })) },
  manyDates: { logs: many(10_000, (n) => ({ id: 1_650_000_000_000 + n * 977_123, n })) },
  longTexts: { articles: [{ id: 1, body: 'x'.repeat(100_000) }, { id: 2, body: 'ä😀\n\t'.repeat(20_000) }] },
  unicodeMembers: {
    words: [{ id: 'ß', 'größe': 1, 'ключ': { 'é': null }, '👍': true, ' a b ': 'c', 'x.y': 1, '': 'empty' }],
  },
  oddMembers: {
    rows: [{ id: 1, 'First Name': 'Ada', 'e-mail': 'a@b.c', '1st': 1, $ref: '#/', _private: true, 'a/b': 1 }],
  },
  reserved: { rows: [{ id: 1, revision: 'r', ownerId: 5, createdAt: 1, updatedAt: null, key: 'k', more: { a: 1 } }] },
  prototypes: JSON.parse(
    '{"rows":[{"id":"__proto__","constructor":1,"toJSON":"x","__proto__":{"a":1},"hasOwnProperty":2}]}',
  ),
  parameters: { rows: [{ id: 1, limit: 5, sort: 'x', q: 'y', fields: 1, embed: true, cursor: 'c', offset: 0, or: 1 }] },
  nulls: { rows: [{ id: 1, a: null }, { id: 2, a: 1, b: null }, { id: 3 }] },
  mixed: {
    rows: [{ id: 1, a: 1 }, { id: 2, a: 'one' }, { id: 3, a: [1] }, { id: 4, a: { b: 1 } }, { id: 5, a: false }],
  },
  mixedIds: { rows: [{ id: 2 }, { id: 'two' }, { id: 1.5 }, { id: 0 }, { id: -7 }, { id: 1 }] },
  zero: { rows: [{ id: 0, n: 'zero' }, { id: 1, n: 'one' }] },
  fractions: { rows: [{ id: 0.1 }, { id: 0.2 }, { id: 1e21 }, { id: 5e-324 }] },
  negative: { rows: [{ id: -1 }, { id: -2 }] },
  unsorted: { rows: [5, 3, 9, 1].map((id) => ({ id, name: `r${id}` })) },
  farApart: { rows: [{ id: 1 }, { id: 4_000_000_000_000_000 }, { id: 9_007_199_254_740_991 }] },
  uuids: {
    rows: [{ id: '3f8b2f0e-6a55-4f0e-9a53-0d2f3b8f1c11' }, { id: '018f4e6a-7b1c-7d2e-8f3a-4b5c6d7e8f90' }],
  },
  pathsAsIds: {
    pages: [{ id: 'a/b' }, { id: '%2F' }, { id: 'a b?c#d' }, { id: '...' }, { id: 'é' }, { id: 'e\u0301' }],
  },
  empty: {},
  emptyCollections: { posts: [], comments: [] },
  emptyArray: [],
  emptyRecords: { rows: [{ id: 1 }, { id: 2 }] },
  plainArrays: {
    tags: ['a', 'b', 'a'], numbers: [3, 1, 2], matrix: [[1, 0], [0, 1]], mixed: [1, 'two', null, { a: 1 }],
  },
  objects: { settings: { theme: 'dark', 'font size': 12, nested: { a: [1, { b: null }] } }, empty: {} },
  scalars: { version: 3, name: 'app', on: true, nothing: null },
  deep: { rows: [{ id: 1, tree: nested(10) }] },
  cases: {
    Orders: [{ id: 1, Total: 3 }], order_items: [{ id: 1, OrderId: 1 }], 'user-settings': [{ id: 'a' }], '2024': [],
  },
  numbers: { rows: [{ id: 1, big: 9_007_199_254_740_991, small: 1e-300, zero: 0, half: 0.5, price: 19.99 }] },
  wide: { rows: [{ id: 1, ...Object.fromEntries(many(300, (n) => [`field${n}`, n])) }] },
  manyRecords: { rows: many(3000, (n) => ({ id: n + 1, name: `r${n}`, even: n % 2 === 0 })) },
  languages: {
    texts: [
      { id: 1, he: 'שלום', ar: 'مرحبا', rtl: '\u202eabc', zero: 'a\u200bb', lines: 'a\u2028b', tab: '\t' },
    ],
  },
  urls: { links: [{ id: 1, url: 'https://example.org/?a=b#c', mail: 'mailto:a@b.c' }, { id: 2, url: 'not one' }] },
};

/** Variants of these files, and the lines that report the difference. */
type Changed = readonly [file: unknown, notes: readonly string[], exported: unknown];
export const changed: Readonly<Record<string, Changed>> = {
  'a path of the server': [
    { changes: [{ id: 1 }], page: [], batch: [{ id: 1 }] },
    ['"changes" is called changes_'],
    { changes_: [{ id: 1 }], page: [], batch: [{ id: 1 }] },
  ],
  'names of other letters': [
    { ключи: [{ id: 1 }], 名前: [] }, ['"ключи" is called _____', '"名前" is called __'],
    { _____: [{ id: 1 }], __: [] },
  ],
  'names that no path has': [
    { 'my posts': [{ id: 1 }], 'a/b': [], '-x': [], Posts: [{ id: 1 }], posts: [{ id: 2 }], '': [] },
    [
      '"my posts" is called my_posts', '"a/b" is called a_b', '"-x" is called _-x', '"posts" is called posts_',
      '"" is called _',
    ],
    { my_posts: [{ id: 1 }], a_b: [], '_-x': [], Posts: [{ id: 1 }], posts_: [{ id: 2 }], _: [] },
  ],
  'names that become one': [
    { 'first name': [{ id: 1 }], first_name: [{ id: 2 }], 'First-Name': [], 'first/name': { a: 1 } },
    ['"first name" is called first_name_', '"first/name" is called first_name__'],
    { first_name_: [{ id: 1 }], first_name: [{ id: 2 }], 'First-Name': [], first_name__: { a: 1 } },
  ],
  'long names that begin alike': [
    Object.fromEntries(['a', 'b', 'c'].map((end) => ['x'.repeat(70) + end, []])),
    [
      `"${'x'.repeat(70)}a" is called ${'x'.repeat(63)}`, `"${'x'.repeat(70)}b" is called ${'x'.repeat(62)}_`,
      `"${'x'.repeat(70)}c" is called ${'x'.repeat(61)}__`,
    ],
    { ['x'.repeat(63)]: [], [`${'x'.repeat(62)}_`]: [], [`${'x'.repeat(61)}__`]: [] },
  ],
  'records without ids': [
    { rows: [{ a: 1 }, { id: 7, a: 2 }, { id: null, a: 3 }] },
    ['rows: 2 records have no id, and get others'],
    { rows: [{ id: 1, a: 1 }, { id: 7, a: 2 }, { id: 8, a: 3 }] },
  ],
  'ids that come twice': [
    { rows: [{ id: 1, a: 1 }, { id: '1', a: 2 }, { id: 2, a: 3 }] },
    ['rows: 1 record has the id of another record, and gets another'],
    { rows: [{ id: 1, a: 1 }, { id: 3, a: 2 }, { id: 2, a: 3 }] },
  ],
  'ids that are none': [
    { rows: [{ id: { $oid: 'x' } }, { id: '' }, { id: '..' }, { id: true }, { id: 'batch' }, { id: 'x'.repeat(129) }] },
    ['rows: 6 records have an id that no path can name, and get others'],
    { rows: [1, 2, 3, 4, 5, 6].map((id) => ({ id })) },
  ],
};
