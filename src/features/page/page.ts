import type { Endpoint } from '../../api/call.ts';
import type { Clock } from '../../base/system.ts';
import type { RequestEntry } from '../../http/message.ts';
import { pageEndpoints } from './assets.ts';
import { Minutes, type Minute } from './minutes.ts';

/** What the page needs of its server. */
interface PageContext {
  readonly settings: { readonly auth: 'required' | 'none' };
  readonly clock: Clock;
  readonly data: { readonly store: { readonly size: number } };
}

/** The page for browsers at `/`, and the figures of the last hour that it draws. */
export function createFeature({ settings, clock, data }: PageContext) {
  const minutes = new Minutes(clock, () => data.store.size);
  return {
    endpoints: (): Endpoint[] => pageEndpoints(settings.auth === 'none'),
    request: (entry: RequestEntry): void => minutes.request(entry),
    status: (): { readonly minutes: Minute[] } => ({ minutes: minutes.recent() }),
  };
}
