import type { Acceptance } from '../accounts/invitations.ts';
import { numberIn } from '../base/record-id.ts';
import type { Shape } from '../schema/field.ts';
import { newRecord, type Body } from './body.ts';
import { withBody, type Route } from './call.ts';
import type { Context } from './context.ts';
import { noContent, unstoredReply } from './replies.ts';

const acceptanceFields = {
  token: { kind: 'text', min: 1, max: 4096, writeOnly: true, example: 'x'.repeat(43) },
  password: { kind: 'password', writeOnly: true },
} as const satisfies Shape;
const acceptance: Body<Acceptance> = newRecord({ shape: acceptanceFields });

export const acceptancePath = '/invitations';

/**
 * Returns an invitation's path. The secret is in a fragment, which appears in no log and no
 * `Referer`.
 */
export const invitationPath = (secret: string): string => `/#/invite/${secret}`;

export function invitationRoutes({ store, invitations }: Context): Route[] {
  return [
    {
      operationId: 'inviteUser',
      summary: 'Invite a user who has no password to choose one',
      success: { status: 201, content: 'NewInvitation' },
      method: 'POST',
      path: '/users/{id}/invitation',
      access: 'admin',
      refusesKeys: true,
      async handle({ request, principal, id }) {
        const { address, caller, basePath } = request;
        const secret = await store.write(
          (tx) => invitations.make(tx, principal, numberIn(id), address),
          caller,
        );
        return unstoredReply(201, JSON.stringify({ path: basePath + invitationPath(secret) }));
      },
    },

    withBody({
      operationId: 'acceptInvitation',
      summary: 'Choose your password with an invitation',
      titles: ['NewPassword'],
      success: { status: 204 },
      method: 'POST',
      path: acceptancePath,
      access: 'public',
      pages: 'own',
      body: acceptance,
      async handle({ request, body }) {
        await invitations.accept(body, request.address);
        return noContent();
      },
    }),
  ];
}
