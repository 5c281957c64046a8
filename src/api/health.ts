import { CairnError } from '../base/errors.ts';
import { bind, type Endpoint } from './call.ts';
import { unstoredReply } from './replies.ts';
import { healthRoutes } from './routes.ts';

/** What the state of the server is asked of. */
export interface HealthServices {
  /** Returns the state of the server and its store: a `Status`, as JSON text. */
  readonly status: () => string;
  /** Returns why the server should not receive requests now; `undefined` if it should. */
  readonly unready: () => Unready | undefined;
}

/** Why a server should not receive requests. */
export type Unready = 'draining' | 'store_failed' | 'storage_full' | 'store_unavailable';

export function healthEndpoints({ status, unready }: HealthServices): Endpoint[] {
  return bind(healthRoutes, {
    status: () => unstoredReply(200, status()),

    live: () => unstoredReply(200, '{"status":"live"}'),

    ready() {
      const reason = unready();
      if (reason === undefined) return unstoredReply(200, '{"status":"ready"}');
      throw new CairnError(reason, 'Cannot answer requests: the server is not ready');
    },
  });
}
