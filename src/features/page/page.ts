import type { Route } from '../../api/call.ts';
import type { Context } from '../../api/context.ts';
import type { RequestEntry } from '../../http/message.ts';
import type { Shape } from '../../schema/field.ts';
import { pageRoutes } from './assets.ts';
import { Minutes, type Minute } from './minutes.ts';

interface PageContext extends Context {
  readonly settings: { readonly auth: 'required' | 'none' };
}

export function createFeature({ settings, clock, store, registry }: PageContext) {
  const hasImages = [...registry.values()].some(({ fields }) => hasImage(fields));
  const minutes = new Minutes(clock, () => store.size);
  return {
    routes: (): Route[] => pageRoutes(settings.auth === 'none', hasImages),
    request: (entry: RequestEntry): void => minutes.request(entry),
    status: (): { readonly minutes: Minute[] } => ({ minutes: minutes.recent() }),
  };
}

const hasImage = (fields: Shape): boolean =>
  Object.values(fields).some(
    (field) => field.format === 'image' || (field.kind === 'object' && hasImage(field.fields)),
  );
