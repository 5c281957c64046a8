import { CairnError } from '../base/errors.ts';
import type { Store } from '../store/store.ts';
import { bind, type Endpoint } from './call.ts';
import { unstoredReply } from './replies.ts';
import { healthRoutes } from './routes.ts';

/** The sources of the server's state. */
export interface HealthServices {
  /** Returns the state of the server and its store: a `Status`, as JSON text. */
  readonly status: () => string;
  /** Returns why the server should not receive requests now; `undefined` if it should. */
  readonly unready: () => Unready | undefined;
  readonly store: Pick<Store, 'state'>;
}

/** Why a server should not receive requests. */
export type Unready = 'draining' | 'store_failed' | 'store_unavailable';

export function healthEndpoints({ status, unready, store }: HealthServices): Endpoint[] {
  return bind(healthRoutes, {
    status: () => unstoredReply(200, status()),

    live: () => unstoredReply(200, '{"status":"live"}'),

    ready() {
      const reason = unready();
      if (reason === undefined) {
        const writes = store.state === 'full' ? ',"writes":"full"' : '';
        return unstoredReply(200, `{"status":"ready"${writes}}`);
      }
      throw new CairnError(reason, 'Cannot answer requests: the server is not ready');
    },
  });
}
