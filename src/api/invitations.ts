import type { Acceptance } from '../accounts/invitations.ts';
import { numberIn } from '../base/record-id.ts';
import type { Shape } from '../schema/field.ts';
import { newRecord, type Body } from './body.ts';
import { bind, type Endpoint } from './call.ts';
import type { Context } from './context.ts';
import { noContent, unstoredReply } from './replies.ts';

const acceptanceFields = {
  token: { kind: 'text', min: 1, max: 4096, writeOnly: true, example: 'x'.repeat(43) },
  password: { kind: 'password', writeOnly: true },
} as const satisfies Shape;
const acceptance: Body<Acceptance> = newRecord({ shape: acceptanceFields });

/** Inviting users, who choose their passwords. A collection called `invitations` has the path instead. */
// prettier-ignore
export const invitationRoutes = {
  inviteUser: {
    operationId: 'inviteUser', method: 'POST', path: '/users/{id}/invitation', access: 'admin', refusesKeys: true,
  },
  acceptInvitation: {
    operationId: 'acceptInvitation', method: 'POST', path: '/invitations', access: 'public', pages: 'own',
    body: acceptance,
  },
} as const;

/** Returns the path of an invitation. It is a fragment, which is in no log and no `Referer`. */
export const invitationPath = (secret: string): string => `/#/invite/${secret}`;

export function invitationEndpoints({ store, invitations }: Context): Endpoint[] {
  return bind(invitationRoutes, {
    async inviteUser({ request, principal, id }) {
      const { address, caller, basePath } = request;
      const secret = await store.write(
        (tx) => invitations.make(tx, principal, numberIn(id), address),
        caller,
      );
      return unstoredReply(201, JSON.stringify({ path: basePath + invitationPath(secret) }));
    },

    async acceptInvitation({ request, body }) {
      await invitations.accept(body, request.address);
      return noContent();
    },
  });
}
