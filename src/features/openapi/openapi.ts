import { bind, type Endpoint, type Route } from '../../api/call.ts';
import { FixedContent } from '../../api/fixed-content.ts';
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

interface FeatureContext {
  readonly settings: { readonly basePath: string; readonly dialect?: string | undefined };
}

/** Describes all other routes. */
export function createFeature({ settings }: FeatureContext) {
  return {
    endpoints(others: readonly Route[]): Endpoint[] {
      let content: FixedContent | undefined;
      return bind(routes, {
        describe({ request }) {
          const all = [...others, ...Object.values(routes)];
          content ??= new FixedContent(
            Buffer.from(JSON.stringify(documentOf(all, settings.basePath, settings.dialect))),
          );
          const fields = ['Cache-Control', 'private, no-cache', ...apiFields];
          return content.answer(request, 'application/json', fields);
        },
      });
    },
  };
}

export const documentOf = openApi;
