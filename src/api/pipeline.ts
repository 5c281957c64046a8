import type { Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { parseJsonBytes } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { checkContentType } from '../http/content-type.ts';
import { notKept } from '../http/idempotency-key.ts';
import { parseQuery } from '../http/query.ts';
import type { Handle, Reply, Request } from '../http/message.ts';
import type { Cors } from '../http/server-options.ts';
import { Router } from '../http/router.ts';
import { authenticate, authorizeRoute, type Authenticators } from './authenticate.ts';
import { patchTypes, type Body } from './body.ts';
import { noContent, redirectTo } from './replies.ts';
import { checkNoVersion } from './versions.ts';
import { idInPath, type Call, type Route } from './call.ts';

interface PipelineOptions extends Authenticators {
  readonly routes: readonly Route[];
  /** If absent, only pages of this site may read responses. */
  readonly cors: Cors | undefined;
  /** True if several processes share the data. They also receive each kept response. */
  readonly isShared: boolean;
}

/**
 * Returns a handler that takes a request through these steps. An error ends it at any step:
 *
 *     match          the method and the path have a route
 *     authenticate   the credentials are valid, and the caller has room for a request
 *     authorize      the caller has access to the route
 *     read           the content is complete JSON of a known type
 *     validate       the body follows its rules
 *     handle         the operation is carried out
 *     reply          the server sends the response, or a problem for an error
 *
 * A response that is ready at once is returned directly, not as a promise.
 */
export function createPipeline(options: PipelineOptions): Handle {
  const router = new Router<Route>(
    options.routes.map((value) => ({ method: value.method, pattern: value.path, value })),
  );
  /** @throws CairnError */
  return function answer(request) {
    options.checkLocal?.(request);
    const match = router.match(request.method, request.target);
    if (match.kind === 'not-found') return answerUnknown(request);
    if (match.kind === 'method-not-allowed') return otherMethod(request, match.allow, options);
    const { value: route, query } = match;
    request.matched(route.path);

    const principal = authenticate(route, request, options);
    request.authenticated(principal.userId);

    const id = idInPath(match.parameter, route.ids);
    authorizeRoute(route, principal, id);

    checkConditions(route, request, query);
    const call = { request, route, principal, id, query, sent: noBytes, body: undefined };
    if (route.body !== undefined) return answerBody(route.body, call, options);
    const turn = request.turn?.();
    return turn ? turn.then(() => route.handle(call)) : route.handle(call);
  };
}

const noBytes = Buffer.alloc(0);

/** @throws CairnError */
async function answerBody(
  body: Body<unknown>,
  call: Call,
  options: PipelineOptions,
): Promise<Reply> {
  const { request, route } = call;
  const { mediaTypes, optional: isOptional = false, isRaw = false, parse } = body;
  const acceptField = route.method === 'PATCH' ? 'Accept-Patch' : 'Accept';
  if (!isOptional && !isRaw) checkContentType(request.fields, mediaTypes, acceptField);
  const sent = await request.receiveBody(limitBytes(body, call, options));
  const isAbsent = isOptional && sent.length === 0;
  if (isOptional && !isAbsent) checkContentType(request.fields, mediaTypes, acceptField);
  const json = isAbsent || isRaw ? {} : parse ? await parse(sent) : parseJsonBytes(sent);

  const { kind } = call.principal;
  const wasLookedUp = kind === 'session' || kind === 'key';
  const principal = wasLookedUp ? authenticateAgain(call, options) : call.principal;
  return await route.handle({ ...call, principal, sent, body: body.validate(json, principal) });
}

/**
 * Returns the current owner of the session or API key, which may have ended while the body arrived
 * (up to a minute). Tokens cannot be revoked and are not checked again; they may expire meanwhile.
 * @throws CairnError as `authenticate` and `authorizeRoute`
 */
function authenticateAgain({ request, route, id }: Call, options: PipelineOptions): Principal {
  const principal = authenticate(route, request, options);
  authorizeRoute(route, principal, id);
  return principal;
}

function limitBytes(
  { bytesMax = limits.bodyBytesMax }: Body<unknown>,
  { request, principal }: Call,
  { isShared, required }: PipelineOptions,
): number {
  // Without authentication every caller is local, so the anonymous limit does not apply.
  if (principal.kind === 'anonymous' && required) return limits.anonymousBodyBytesMax;
  const isKept = isShared && request.fields.get('idempotency-key') !== undefined;
  if (isKept) return limits.keyedBodyBytesMax;
  return isShared ? limits.bodyBytesMax : bytesMax;
}

/** @throws CairnError */
function checkConditions(route: Route, request: Request, query: string): void {
  const { method, conditional, of, query: parameters, success } = route;
  const isConditional = method === 'GET' || conditional === true;
  if (!isConditional && request.fields.get('if-match') !== undefined) checkNoVersion(request);
  if (parameters === undefined && parseQuery(query).size > 0) {
    throw new CairnError(
      'invalid_query',
      'Cannot read the query: this path does not take parameters',
    );
  }
  // A kept response must not contain a secret, as sign-ins do.
  const isKept = of !== undefined || success?.headers?.includes('Idempotency-Replayed') === true;
  if (method === 'POST' && !isKept && request.fields.get('idempotency-key') !== undefined)
    throw notKept('here');
  // RFC 9110 §14.5: taking a part for the whole would delete the rest.
  if (method === 'PUT' && request.fields.get('content-range') !== undefined) {
    throw new CairnError(
      'malformed_request',
      'Cannot read the body: Content-Range is not supported',
    );
  }
}

/** @throws CairnError for any other method without a route at this path */
function otherMethod(request: Request, allow: string, { cors }: PipelineOptions): Reply {
  if (request.method === 'OPTIONS') {
    const patch = allow.includes('PATCH') ? ['Accept-Patch', patchTypes.join(', ')] : [];
    const preflight = cors?.preflight(request.fields, allow) ?? [];
    return noContent(['Allow', allow, ...patch, ...preflight]);
  }
  const supported = allow.replace(/, (\w+)$/, ' and $1');
  const message = `Method not allowed: this path supports ${supported}`;
  throw new CairnError('method_not_allowed', message, { fields: ['Allow', allow] });
}

/** @throws CairnError `not_found` */
function answerUnknown(request: Request): Reply {
  // RFC 9110 §9.3.7: OPTIONS * asks about the server, not about a resource.
  if (request.target === '*') return noContent();
  // The page's paths are relative, so they need the slash after the base path.
  if (request.target === '') return redirectTo(`${request.basePath}/`);
  throw new CairnError(
    'not_found',
    'Cannot find the path: no route has it; /openapi.json has all paths',
  );
}
