import type { Route } from '../../api/call.ts';
import { FixedContent } from '../../api/fixed-content.ts';
import { apiFields } from '../../http/message.ts';
import { openApi } from './document.ts';

/** The OpenAPI document, at `/openapi.json`. */

interface FeatureContext {
  readonly settings: { readonly basePath: string; readonly dialect?: string | undefined };
}

export function createFeature({ settings }: FeatureContext) {
  return {
    routes(others: readonly Route[]): Route[] {
      let content: FixedContent | undefined;
      const route: Route = {
        operationId: 'describe',
        summary: 'Read this OpenAPI document',
        tag: 'server',
        success: { content: 'Document', headers: ['ETag'] },
        method: 'GET',
        path: '/openapi.json',
        access: 'public',
        conditional: true,
        handle({ request }) {
          const all = [...others, route];
          content ??= new FixedContent(
            Buffer.from(JSON.stringify(openApi(all, settings.basePath, settings.dialect))),
          );
          const fields = ['Cache-Control', 'private, no-cache', ...apiFields];
          return content.answer(request, 'application/json', fields);
        },
      };
      return [route];
    },
  };
}
