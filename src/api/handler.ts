import type { Principal } from '../auth/principal.ts';
import type { JsonValue } from '../base/json.ts';
import type { Reply, Request } from '../http/message.ts';
import type { Query } from '../http/query.ts';

/** A request that has been matched, authenticated, authorized and read. */
export interface Call {
  readonly request: Request;
  readonly principal: Principal;
  /** The `{id}` of the path; 0 where the path has none, which no record has. */
  readonly id: number;
  readonly query: Query;
  /** The parsed body; `undefined` where the route takes none, or an optional one is absent. */
  readonly body: JsonValue | undefined;
}

/** Does what a route promises. @throws CairnError */
export type Handler = (call: Call) => Reply | Promise<Reply>;
