import type { TestContext } from 'node:test';
import { createApp } from '../../src/app.ts';
import { everybody } from '../../src/auth/access.ts';

export const password = 'the house on the hill';

export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** Does something as another client of Ada's would: a bearer token, no browser. */
  as(who: 'ada' | 'grace', method: string, target: string, body?: object): Promise<{ status: number; data: any }>;
}

/**
 * An application in memory on a port of its own. Ada (1) is an administrator, Grace (2) a member; `people` more are
 * members, and there are `things` items of the names `Thing 1`, `Thing 2` … at rising prices.
 */
export async function serve(
  t: TestContext,
  { people = 0, things = 0, auth }: { people?: number; things?: number; auth?: 'none' } = {},
): Promise<TestServer> {
  const app = await createApp({ scryptCost: 1, auth });
  t.after(() => app.close());
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const emails = { ada: 'ada@example.org', grace: 'grace@example.org' } as const;
  const tokens = new Map<string, string>();
  const send = (method: string, target: string, content: object | undefined, fields: object = {}) =>
    app.inject({
      method, target, fields: { 'Content-Type': 'application/json', ...fields },
      ...(content !== undefined && { body: JSON.stringify(content) }),
    });
  const tokenOf = async (email: string): Promise<string> => {
    const granted = JSON.parse((await send('POST', '/tokens', { email, password })).body);
    // The access token stays good; the refresh token would be one more session in the lists.
    await send('POST', '/tokens/revoke', { refresh_token: granted.refresh_token });
    return granted.access_token;
  };
  const as: TestServer['as'] = async (who, method, target, body) => {
    const token = tokens.get(who) ?? await tokenOf(emails[who]);
    tokens.set(who, token);
    const { status, body: text } = await send(method, target, body, { Authorization: `Bearer ${token}` });
    return { status, data: text === '' ? undefined : JSON.parse(text) };
  };
  await app.users.create(everybody, { name: 'Ada', role: 'admin', email: emails.ada, password });
  await as('ada', 'PATCH', '/users/1', { name: 'Ada Lovelace' });
  await as('ada', 'POST', '/users', { name: 'Grace Hopper', email: emails.grace, password });
  for (let n = 1; n <= people; n++) {
    await as('ada', 'POST', '/users', { name: `Person ${n}`, email: `person.${n}@example.org` });
  }
  for (let n = 1; n <= things; n++) await as('ada', 'POST', '/items', { name: `Thing ${n}`, price: n * 1.25 });
  return { url: `http://127.0.0.1:${port}`, port, as };
}
