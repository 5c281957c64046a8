/** Files and requests of thirty-two kinds of projects that use json-server, for `json-server.release.ts`. */

/**
 * A project's `db.json`, and the requests of its front end, whose order counts: later ones read what earlier ones
 * write.
 */
export interface Project {
  readonly file: Readonly<Record<string, unknown>>;
  readonly requests: readonly string[];
}

const picture = `data:image/png;base64,${'iVBORw0KGgo'.repeat(30)}`;

export const projects: Readonly<Record<string, Project>> = {
  'a blog': {
    file: {
      posts: [{ id: 1, title: 'Hello', authorId: 1 }, { id: 2, title: 'Again', authorId: 2 }],
      authors: [{ id: 1, name: 'Ada' }, { id: 2, name: 'Mia' }],
      comments: [{ id: 1, body: 'nice', postId: 1 }, { id: 2, body: 'so', postId: 1 }],
    },
    requests: ['GET /posts?_expand=author', 'GET /posts/1?_embed=comments', 'GET /posts/1/comments',
      'POST /posts/2/comments {"body":"new"}', 'GET /comments?postId=2', 'PATCH /posts/1 {"title":"Changed"}',
      'GET /posts?_sort=title&_order=desc', 'DELETE /posts/1', 'GET /comments'],
  },
  'films with reviews': {
    file: {
      movies: [{ id: 1, title: 'Alien', year: 1979 }, { id: 2, title: 'Heat', year: 1995 }],
      reviews: [{ id: 1, movieId: 1, stars: 5 }, { id: 2, movieId: 2, stars: 4 }],
    },
    requests: ['GET /movies/1/reviews', 'GET /movies?_embed=reviews', 'GET /reviews?_expand=movie',
      'GET /movies?year_gte=1980', 'POST /movies/1/reviews {"stars":3}', 'DELETE /movies/2', 'GET /reviews'],
  },
  'a shop': {
    file: {
      products: [{ id: 'p1', name: 'Lamp', price: 20.5, tags: ['red'] }, { id: 'p2', name: 'Oak', price: 300, tags: [] }],
      categories: [{ id: 'c1', name: 'Light' }],
      cart: [{ id: 'x', productId: 'p1', count: 2 }],
    },
    requests: ['GET /products/p1', 'GET /products?price_lte=100', 'GET /products?name_like=oa', 'GET /cart?_expand=product',
      'PUT /cart/x {"productId":"p2","count":1}', 'GET /cart?productId=p2', 'GET /products?q=lamp', 'DELETE /cart/x', 'GET /cart'],
  },
  'a list of tasks': {
    file: { todos: [{ id: 1, text: 'a', done: false }, { id: 2, text: 'b', done: true }, { id: 3, text: 'c', done: false }] },
    requests: ['GET /todos?done=true', 'GET /todos?done=false&_limit=1', 'PATCH /todos/1 {"done":true}', 'GET /todos/1',
      'POST /todos {"text":"d","done":false}', 'DELETE /todos/2', 'GET /todos?_sort=text&_order=desc'],
  },
  'heroes of a tutorial': {
    file: { heroes: [{ id: 11, name: 'Dr Nice' }, { id: 12, name: 'Narco' }], powers: [{ id: 1, heroId: 11 }] },
    requests: ['GET /heroes/11', 'GET /heroes?name=Narco', 'GET /heroes/11/powers', 'PUT /heroes/12 {"id":12,"name":"X"}',
      'POST /heroes {"name":"New"}', 'DELETE /heroes/11', 'GET /powers'],
  },
  'tickets with statuses': {
    file: { statuses: [{ id: 1, label: 'open' }], tickets: [{ id: 1, statusId: 1 }, { id: 2, statusId: 1 }] },
    requests: ['GET /statuses/1/tickets', 'GET /tickets?_expand=status', 'GET /statuses?_embed=tickets', 'GET /tickets?statusId=1'],
  },
  'series with episodes': {
    file: { series: [{ id: 1, name: 'S' }], episodes: [{ id: 1, seriesId: 1, number: 2 }, { id: 2, seriesId: 1, number: 1 }] },
    requests: ['GET /series/1/episodes?_sort=number', 'GET /episodes?_expand=series', 'GET /series?_embed=episodes', 'DELETE /series/1'],
  },
  'people and their pets': {
    file: { people: [{ id: 1, name: 'Ada' }], pets: [{ id: 1, personId: 1, kind: 'cat' }] },
    requests: ['GET /people/1/pets', 'GET /pets?_expand=person', 'GET /people?_embed=pets', 'POST /people/1/pets {"kind":"dog"}',
      'DELETE /people/1', 'GET /pets'],
  },
  'translations': {
    file: { en: { hello: 'Hello', 'menu.open': 'Open' }, de: { hello: 'Hallo' } },
    requests: ['GET /en', 'GET /de', 'PATCH /en {"bye":"Bye"}', 'PUT /de {"hello":"Servus"}', 'GET /de', 'GET /en?_=1'],
  },
  'pictures': {
    file: { photos: [{ id: 1, src: picture, width: 3 }] },
    requests: ['GET /photos/1', `POST /photos {"src":"${picture}","width":4}`, 'GET /photos?width_gte=4', 'GET /photos?_limit=1'],
  },
  'a game on a grid': {
    file: { levels: [{ id: 1, cells: [[0, 1], [1, 0]] }], scores: [{ id: 1, levelId: 1, points: 10 }] },
    requests: ['GET /levels/1', 'PUT /levels/1 {"cells":[[1]]}', 'GET /scores?_sort=points&_order=desc&_limit=3', 'GET /levels/1/scores'],
  },
  'a chat': {
    file: { rooms: [{ id: 'a1', name: 'main' }], messages: [{ id: 1, roomId: 'a1', at: 1700000000000, text: 'hi' }] },
    requests: ['GET /rooms/a1/messages', 'GET /messages?at_gte=1600000000000', 'POST /messages {"roomId":"a1","text":"yo"}',
      'GET /messages?roomId=a1', 'GET /messages?_sort=at&_order=desc&_page=1&_limit=1'],
  },
  'recipes': {
    file: { recipes: [{ id: 1, title: 'Soup', ingredients: [{ name: 'salt', grams: 3 }], minutes: 20 }] },
    requests: ['GET /recipes?minutes_lte=30', 'PATCH /recipes/1 {"ingredients":[]}', 'GET /recipes?q=soup', 'GET /recipes/1',
      'GET /recipes?title_ne=Soup'],
  },
  'a school': {
    file: {
      classes: [{ id: 1, name: '1a' }], students: [{ id: 1, classId: 1, name: 'Ada', grade: 1.5 }],
      addresses: [{ id: 1, studentId: 1, city: 'Rome' }],
    },
    requests: ['GET /classes/1/students', 'GET /students?_expand=class', 'GET /students/1/addresses', 'GET /students?grade_lte=2',
      'DELETE /students/1', 'GET /addresses'],
  },
  'a clinic': {
    file: { patients: [{ id: 1, name: 'A', born: '1980-01-02' }], diagnoses: [{ id: 1, patientId: 1, code: 'J1' }] },
    requests: ['GET /patients?born_gte=1970', 'GET /patients/1/diagnoses', 'GET /patients?_embed=diagnoses', 'GET /diagnoses?code=J1'],
  },
  'a library': {
    file: { books: [{ id: 1, title: 'Emma', author: { name: 'Austen', born: 1775 } }, { id: 2, title: 'Ulysses', author: { name: 'Joyce', born: 1882 } }] },
    requests: ['GET /books?author.name=Joyce', 'GET /books?_sort=author.born&_order=desc', 'GET /books?author.born_gte=1800',
      'PATCH /books/1 {"author":{"name":"Jane"}}', 'GET /books/1'],
  },
  'music': {
    file: { songs: [{ id: 1, title: 'A', length: 100 }], playlists: [{ id: 1, name: 'P', songIds: [1] }] },
    requests: ['GET /playlists/1', 'PATCH /playlists/1 {"songIds":[1,2]}', 'GET /songs?length_gte=50&length_lte=200', 'GET /songs?title_like=a'],
  },
  'a calendar': {
    file: { events: [{ id: 1, title: 'x', start: '2026-01-01T10:00:00Z', allDay: false }] },
    requests: ['GET /events?start_gte=2025-12-01', 'GET /events?start_lte=2025-12-01', 'GET /events?allDay=false', 'DELETE /events/1', 'GET /events'],
  },
  'jobs with pages': {
    file: { jobs: Array.from({ length: 25 }, (_, index) => ({ id: index + 1, title: `Job ${index + 1}`, remote: index % 2 === 0 })) },
    requests: ['GET /jobs?_page=1', 'GET /jobs?_page=2&_limit=5', 'GET /jobs?_page=3&_limit=10', 'GET /jobs?_start=20', 'GET /jobs?_start=5&_end=7',
      'GET /jobs?_limit=2', 'GET /jobs?remote=true&_page=1&_limit=3', 'GET /jobs?_page=2&_per_page=10', 'GET /jobs?_page=99&_limit=10'],
  },
  'a bank': {
    file: { accounts: [{ id: '0a1b', owner: 'Ada', balance: -5.25 }], transactions: [{ id: 1, accountId: '0a1b', amount: 10 }] },
    requests: ['GET /accounts/0a1b', 'GET /accounts?balance_lte=0', 'GET /accounts/0a1b/transactions', 'POST /transactions {"accountId":"0a1b","amount":1e3}',
      'GET /transactions?amount_gte=1000', 'GET /accounts?_embed=transactions'],
  },
  'a store room': {
    file: { items: [{ id: 1, sku: 'A-1', limit: 5, offset: 0 }, { id: 2, sku: 'B-2', limit: 10, offset: 3 }] },
    requests: ['GET /items?limit=5', 'GET /items?offset=3', 'GET /items?sku=A-1&limit=10', 'GET /items?_sort=limit&_order=desc', 'GET /items?limit_gte=6'],
  },
  'settings': {
    file: { settings: { theme: 'dark', size: 2 }, profile: { name: 'typicode' } },
    requests: ['GET /settings', 'PATCH /settings {"size":3}', 'PUT /profile {"name":"x"}', 'GET /profile', 'POST /settings {"theme":"light"}'],
  },
  'a quiz': {
    file: { quizzes: [{ id: 1, title: 'Q' }], questions: [{ id: 1, quizId: 1, text: '2+2', options: ['3', '4'], answer: 1 }] },
    requests: ['GET /quizzes/1/questions', 'GET /quizzes?_embed=questions', 'GET /questions?_expand=quiz', 'GET /questions?answer=1'],
  },
  'users with passwords': {
    file: { users: [{ id: 1, email: 'ada@example.org', password: 'secret' }], sessions: [{ id: 1, userId: 1 }] },
    requests: ['GET /users?email=ada@example.org&password=secret', 'GET /users?email=nobody@example.org', 'POST /users {"email":"b@example.org"}',
      'GET /users/1/sessions', 'GET /sessions?_expand=user', 'PATCH /users/1 {"password":"x"}'],
  },
  'threads of comments': {
    file: { comments: [{ id: 1, text: 'a', commentId: null }, { id: 2, text: 'b', commentId: 1 }] },
    requests: ['GET /comments?commentId=1', 'GET /comments/1/comments', 'POST /comments/2/comments {"text":"c"}', 'GET /comments?_expand=comment'],
  },
  'capitals in names': {
    file: { Posts: [{ Id: 5, id: 1, Title: 'T' }], Comments: [{ id: 1, PostId: 1, 'Full Text': 'x' }] },
    requests: ['GET /Posts/1/Comments', 'GET /Posts?_embed=Comments', 'GET /Comments?_expand=Post', 'GET /Posts?Title=T', 'GET /posts'],
  },
  'names with hyphens': {
    file: { 'menu-items': [{ id: 1, label: 'Home' }], user_roles: [{ id: 1, role: 'x' }] },
    requests: ['GET /menu-items', 'POST /menu-items {"label":"New"}', 'GET /user_roles/1', 'PATCH /user_roles/1 {"role":"y"}', 'GET /menu-items?label_like=ho'],
  },
  'strange ids': {
    file: { things: [{ id: 0, n: 1 }, { id: 1.5, n: 2 }, { id: 'a b', n: 3 }, { id: 1700000000000, n: 4 }] },
    requests: ['GET /things/0', 'GET /things/1.5', 'GET /things/a%20b', 'GET /things/1700000000000', 'GET /things?id=0', 'DELETE /things/0', 'GET /things'],
  },
  'empty at first': {
    file: { notes: [], tags: [] },
    requests: ['GET /notes', 'GET /notes?_page=1&_limit=10', 'POST /notes {"text":"a"}', 'GET /notes/1', 'GET /notes/2', 'DELETE /notes/9', 'GET /tags?x=1'],
  },
  'paths of a server': {
    file: { status: [{ id: 1, up: true }], changes: [{ id: 1, of: 'x' }], metrics: [{ id: 1, value: 3 }] },
    requests: ['GET /status', 'GET /changes/1', 'GET /metrics?value=3', 'POST /status {"up":false}', 'GET /status?up=true'],
  },
  'products of one kind': {
    file: { product: [{ id: 1, name: 'P' }], sales: [{ id: 1, productId: 1 }], news: [{ id: 1, text: 'n' }], media: [{ id: 1, url: '/a' }] },
    requests: ['GET /product/1/sales', 'GET /product?_embed=sales', 'GET /news?_limit=1', 'POST /news {"text":"m"}', 'GET /media/1', 'GET /sales?productId=1'],
  },
  'an admin panel': {
    file: { orders: Array.from({ length: 12 }, (_, index) => ({ id: index + 1, total: (index * 7) % 10, state: index % 3 ? 'open' : 'done' })) },
    requests: ['GET /orders?_sort=total&_order=ASC&_start=0&_end=5', 'GET /orders?id=1&id=3', 'GET /orders?state=open&_sort=total,id&_order=DESC,ASC&_start=0&_end=3',
      'GET /orders?total_gte=&total_lte=3', 'GET /orders?_sort=state,total,id,x&_order=asc,desc,asc,asc&_limit=4', 'GET /orders?q=done&_start=0&_end=2', 'DELETE /orders/12'],
  },
};
