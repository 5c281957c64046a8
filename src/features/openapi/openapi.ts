import { bind, type Endpoint, type Route } from '../../api/call.ts';
import { FixedContent } from '../../api/fixed-content.ts';
import type { JsonObject } from '../../base/json.ts';
import { version } from '../../base/version.ts';
import { apiFields } from '../../http/message.ts';
import { openApi } from './document.ts';

/**
 * The feature that describes the API: the OpenAPI document, at `/openapi.json`.
 */

export const routes = {
  describe: {
    operationId: 'describe',
    method: 'GET',
    path: '/openapi.json',
    access: 'public',
    conditional: true,
  },
} as const satisfies { readonly [operation: string]: Route };

/** Describes all other routes. */
export function createFeature({ settings }: { readonly settings: { readonly basePath: string } }) {
  return {
    endpoints: (others: readonly Route[]): Endpoint[] => endpointsOf(others, settings.basePath),
  };
}

function endpointsOf(others: readonly Route[], basePath: string): Endpoint[] {
  let content: FixedContent | undefined;
  return bind(routes, {
    describe({ request }) {
      content ??= new FixedContent(
        Buffer.from(JSON.stringify(documentOf([...others, ...Object.values(routes)], basePath))),
      );
      return content.answer(request, 'application/json', [
        ...['Cache-Control', 'private, no-cache'],
        ...apiFields,
      ]);
    },
  });
}

/** Returns the document of a server that has these routes. */
export function documentOf(all: readonly Route[], basePath: string): JsonObject {
  return openApi(all, version, basePath);
}
