import assert from 'node:assert/strict';

const json = { 'Content-Type': 'application/json' };

/** Signs the first administrator in by cookie and by token, and creates an item; returns the number of items. */
export async function signInAndWrite(base: string, password: string): Promise<number> {
  const body = JSON.stringify({ email: 'admin@localhost.localdomain', password });
  assert.equal((await fetch(`${base}/login`, { method: 'POST', headers: json, body })).status, 200);
  const answer: unknown = await (await fetch(`${base}/tokens`, { method: 'POST', headers: json, body })).json();
  const { access_token: token } = answer as { access_token: string };
  const headers = { ...json, Authorization: `Bearer ${token}` };
  const made = await fetch(`${base}/items`, { method: 'POST', headers, body: '{"name":"Lamp","price":1}' });
  assert.equal(made.status, 201);
  const items: unknown = await (await fetch(`${base}/items`, { headers })).json();
  return (items as unknown[]).length;
}
