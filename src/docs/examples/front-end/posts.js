// A front end written for json-server, which works the same with Cairn.
const origin = 'http://localhost:3000';

async function ask(path, method = 'GET', body = undefined) {
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(origin + path, {
    method,
    ...(body && { headers, body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  return response.json();
}

/** The most read posts, with their comments and authors. */
export async function loadPage() {
  const [profile, posts] = await Promise.all([
    ask('/profile'),
    ask('/posts?_sort=views&_order=desc&_limit=10&_embed=comments'),
  ]);
  return { profile, posts };
}

export const addPost = (title) => ask('/posts', 'POST', { title, views: 0 });
export const readPost = (id, views) => ask(`/posts/${id}`, 'PATCH', { views });
export const addComment = (postId, text) => ask(`/posts/${postId}/comments`, 'POST', { text });
export const removePost = (id) => ask(`/posts/${id}`, 'DELETE');
