import { CairnError } from '../base/errors.ts';
import type { Store } from '../store/store.ts';
import type { Route } from './call.ts';
import { unstoredReply } from './replies.ts';

export interface HealthServices {
  readonly status: () => string;
  /** Returns why the server should get no requests now; `undefined` if it should. */
  readonly unready: () => Unready | undefined;
  readonly store: Pick<Store, 'state'>;
}

export type Unready = 'draining' | 'store_failed' | 'store_unavailable';

/** This path is served even after everything else has stopped. */
export const livePath = '/livez';

export function healthRoutes({ status, unready, store }: HealthServices): Route[] {
  return [
    {
      operationId: 'live',
      summary: 'Check that the process is running',
      tag: 'server',
      success: { content: 'Health' },
      method: 'GET',
      path: livePath,
      access: 'public',
      isAlwaysServed: true,
      handle: () => unstoredReply(200, '{"status":"live"}'),
    },
    {
      operationId: 'status',
      summary: 'Read the state of the server and its store',
      tag: 'server',
      success: { content: 'Status' },
      method: 'GET',
      path: '/status',
      access: 'admin',
      handle: () => unstoredReply(200, status()),
    },
    {
      operationId: 'ready',
      summary: 'Check that the server is ready for requests',
      tag: 'server',
      success: { content: 'Health' },
      method: 'GET',
      path: '/readyz',
      access: 'public',
      isAlwaysServed: true,
      handle() {
        const reason = unready();
        if (reason === undefined) {
          const writes = store.state === 'full' ? ',"writes":"full"' : '';
          return unstoredReply(200, `{"status":"ready"${writes}}`);
        }
        throw new CairnError(reason, 'Cannot answer requests: the server is not ready');
      },
    },
  ];
}
