import { requireUser } from '../../auth/access.ts';
import type { AccountContext } from '../../accounts/context.ts';
import { checkPrincipal } from '../../accounts/principal.ts';
import { apiKeyFields } from '../../accounts/records.ts';
import { wrongPassword } from '../../accounts/users.ts';
import { askedUser, askedUserQuery } from '../../api/account.ts';
import { newRecord } from '../../api/body.ts';
import { withBody, type Route } from '../../api/call.ts';
import type { Context } from '../../api/context.ts';
import { noContent, unstoredReply } from '../../api/replies.ts';
import type { JsonObject } from '../../base/json.ts';
import { numberIn } from '../../base/record-id.ts';
import { found } from '../../collections/resource.ts';
import type { Shape } from '../../schema/field.ts';
import { representationWriter } from '../../schema/record.ts';
import { creation, validateBody } from '../../schema/validate.ts';
import { published } from '../../store/store.ts';
import { ApiKeys } from './api-keys.ts';

/** API keys: credentials for scripts and devices, which cannot sign in. */

const { name, readOnly, expiresAt } = apiKeyFields;
const newKeyFields = {
  name,
  readOnly,
  expiresAt,
  currentPassword: { kind: 'password', writeOnly: true, optional: true },
} as const satisfies Shape;

const newKey = newRecord({ shape: newKeyFields });

export function createFeature(context: Context) {
  const keys = new ApiKeys(context);
  context.tokens.verifyKey = (key) => keys.resume(key);
  return { routes: (): Route[] => keyRoutes(keys, context) };
}

/** Creates a key for a command. @throws CairnError as `ApiKeys.make` */
export async function makeKey(
  context: AccountContext,
  userId: number,
  sent: JsonObject,
): Promise<string> {
  const keys = new ApiKeys(context);
  const input = validateBody({ shape: newKeyFields }, sent, creation, {});
  const { key } = await context.store.write((tx) => keys.make(tx, userId, input));
  return key;
}

function keyRoutes(keys: ApiKeys, context: Context): Route[] {
  const { store, users } = context;
  const write = representationWriter(apiKeyFields);
  return [
    withBody({
      operationId: 'createApiKey',
      summary: 'Create an API key for a script or a device',
      titles: ['NewApiKey'],
      success: { status: 201, content: 'MadeApiKey' },
      method: 'POST',
      path: '/keys',
      access: 'user',
      refusesKeys: true,
      body: newKey,
      async handle({ request, principal, body }) {
        const { address, caller } = request;
        await store.confirm();
        checkPrincipal(published, principal, context);
        const { userId } = requireUser(principal);
        // Otherwise a stolen token could become a permanent credential.
        const user = found(users.records.get(userId));
        const provenHash = await users.prove(user, body.currentPassword, address);
        const { key, record } = await store.write((tx) => {
          checkPrincipal(tx, principal, context);
          if (tx.of(users.records).get(userId)?.passwordHash !== provenHash) throw wrongPassword();
          return keys.make(tx, userId, body, address);
        }, caller);
        return unstoredReply(201, `${write(record).slice(0, -1)},"key":"${key}"}`);
      },
    }),

    {
      operationId: 'listApiKeys',
      summary: 'List your API keys; administrators may list those of any user',
      success: { content: 'ApiKeys' },
      method: 'GET',
      path: '/keys',
      access: 'user',
      refusesKeys: true,
      query: askedUserQuery,
      handle(call) {
        return unstoredReply(200, `[${keys.list(askedUser(call)).map(write).join(',')}]`);
      },
    },

    {
      operationId: 'removeApiKey',
      summary: 'Revoke one of your API keys, or as an administrator any',
      success: { status: 204 },
      method: 'DELETE',
      path: '/keys/{id}',
      access: 'user',
      refusesKeys: true,
      async handle({ request: { address, caller }, principal, id }) {
        await store.write((tx) => keys.remove(tx, principal, numberIn(id), address), caller);
        return noContent();
      },
    },
  ];
}
