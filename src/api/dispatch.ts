import { authorize, notFound, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { parseJsonBytes, type JsonObject } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { checkContentType } from '../http/accept.ts';
import { corsFields, isPreflight, preflightFields } from '../http/cross-site.ts';
import { internal } from '../http/exchanger.ts';
import { parseQuery } from '../http/head.ts';
import type { Handle, Reply, Request } from '../http/message.ts';
import { Router, type Found, type Match, type MethodNotAllowed } from '../http/router.ts';
import { authenticate, refuseForeigners, type Authenticators } from './authenticate.ts';
import { problems } from './problems.ts';
import { noContent, refusal, refuseVersion } from './replies.ts';
import { mediaTypesOf, patchTypes, preferredType } from './route.ts';
import type { Call, Handler, Route, RouteBody } from './route.ts';

/** A row of the route table with what does it. */
export interface Endpoint {
  readonly route: Route;
  readonly handle: Handler;
}

export interface DispatchOptions extends Authenticators {
  readonly endpoints: readonly Endpoint[];
  readonly bodyBytesMax: number;
  /** Told of every failure that is a bug, never of an operating error. */
  readonly onBug: (error: unknown, request: Request) => void;
}

/** Binds routes to their handlers by name; a missing handler, or one too many, does not compile. */
export function bind<K extends string>(
  routes: { readonly [operationId in K]: Route },
  handlers: { readonly [operationId in NoInfer<K>]: Handler },
): Endpoint[] {
  const endpoints: Endpoint[] = [];
  for (const key in routes) endpoints.push({ route: routes[key], handle: handlers[key] });
  return endpoints;
}

/**
 * The pipeline: match → authenticate → authorize → read → handle → reply. It never throws or rejects, and where nothing
 * has to be waited for, the reply is there at once.
 */
export function createDispatch(options: DispatchOptions): Handle {
  const { endpoints, allowedOrigins, bodyBytesMax, onBug } = options;
  const anonymousBytesMax = Math.min(bodyBytesMax, limits.anonymousBodyBytesMax);
  const router = new Router<Endpoint>(
    endpoints.map((endpoint) => ({ method: endpoint.route.method, pattern: endpoint.route.path, value: endpoint })),
  );

  function answer(request: Request, match: Match<Endpoint>): Reply | Promise<Reply> {
    if (!options.required) refuseForeigners(request);
    // RFC 9110 §9.3.7: asked of the server and not of a resource.
    if (request.target === '*') return noContent();
    if (match.kind === 'not-found') throw notFound();
    if (match.kind === 'method-not-allowed') return otherMethod(request, match);
    const { route, handle } = match.value;
    request.route = route.path;
    const id = idOf(match);
    const principal = admit(route, request, id);
    checkAcceptable(route, request);
    if (route.method !== 'GET' && route.conditional !== true) refuseVersion(request);
    if (route.query === undefined) refuseQuery(match.query);
    const call = { request, route, principal, id, query: match.query, body: absent };
    return route.body === undefined ? handle(call) : answerBody(handle, route.body, call);
  }

  /** Who calls, if they may use the route. */
  function admit(route: Route, request: Request, id: number): Principal {
    const principal = authenticate(route, request, options);
    request.userId = principal.userId;
    authorize(route.access, principal, id);
    return principal;
  }

  /** @throws CairnError `unsupported_media_type`, `content_too_large`, `malformed_json`, `request_timeout` */
  async function answerBody(handle: Handler, body: RouteBody, call: Call): Promise<Reply> {
    const { request, route, principal, id } = call;
    // RFC 9110 §14.5: taken for the whole, a part would be all that is left.
    if (body.purpose === 'replace' && request.fields.get('content-range') !== undefined) {
      throw new CairnError('malformed_request', 'Cannot read the body: it is a part, by its Content-Range');
    }
    const bytesMax = principal.kind === 'anonymous' ? anonymousBytesMax : bodyBytesMax;
    // The type is checked before a byte is read, but where no content is content enough.
    if (body.optional !== true) checkContentType(request.fields, mediaTypesOf(body));
    const bytes = await request.receiveBody(bytesMax);
    const isAbsent = body.optional === true && bytes.length === 0;
    if (body.optional === true && !isAbsent) checkContentType(request.fields, mediaTypesOf(body));
    // A body may take its time, and a session ends at once.
    const still = principal.kind === 'session' ? admit(route, request, id) : principal;
    return await handle({ ...call, principal: still, body: isAbsent ? absent : parseJsonBytes(bytes) });
  }

  function refuse(error: unknown, request: Request, match: Match<Endpoint>): Reply {
    if (!(error instanceof CairnError)) {
      onBug(error, request);
      return withCors(refusal(internal, request.id), request);
    }
    const route = match.kind === 'found' ? match.value.route : undefined;
    const { status } = problems[error.code];
    const wantsPage = route?.signInAt !== undefined && preferredType(route, request) === 'text/html';
    if (wantsPage && (status === 401 || status === 403)) {
      return withCors(noContent(['Location', route.signInAt], 303), request);
    }
    const isType = error.code === 'unsupported_media_type' && route?.body !== undefined;
    return withCors(refusal(error, request.id, isType ? takenInstead(route.body, request) : []), request);
  }

  function withCors(reply: Reply, { fields }: Request): Reply {
    if (allowedOrigins.size === 0) return reply;
    return { ...reply, fields: [...reply.fields, ...corsFields(fields, allowedOrigins)] };
  }

  return function dispatch(request) {
    const match = router.match(request.method, request.target);
    try {
      const reply = answer(request, match);
      if (!(reply instanceof Promise)) return withCors(reply, request);
      return reply.then((made) => withCors(made, request), (error: unknown) => refuse(error, request, match));
    } catch (error) {
      return refuse(error, request, match);
    }
  };
}

const absent: JsonObject = {};

/** The id that the path names; 0, which no record has, where it names none or something that is no id. */
function idOf({ parameters }: Found<Endpoint>): number {
  const id = parameters['id'];
  return id !== undefined && /^[1-9]\d{0,15}$/.test(id) && Number.isSafeInteger(Number(id)) ? Number(id) : 0;
}

/** @throws CairnError `invalid_query`: nothing in a query is ever ignored */
function refuseQuery(query: string): void {
  if (parseQuery(query).size === 0) return;
  throw new CairnError('invalid_query', 'Cannot read the query: this route takes no parameters');
}

/** @throws CairnError `not_acceptable` where `Accept` leaves out everything that the route can show */
function checkAcceptable(route: Route, request: Request): void {
  if (route.reply.schema === undefined || preferredType(route, request) !== undefined) return;
  throw new CairnError('not_acceptable', 'Cannot show the resource as asked: it is shown as application/json');
}

/** The answer to a known path without a route for this method: OPTIONS is told what there is, all else is refused. */
function otherMethod(request: Request, { allow }: MethodNotAllowed): Reply {
  const allowed = ['Allow', allow, ...(allow.includes('PATCH') ? ['Accept-Patch', patchTypes.join(', ')] : [])];
  if (isPreflight(request.method, request.fields)) return noContent([...allowed, ...preflightFields(allow)]);
  if (request.method === 'OPTIONS') return noContent(allowed);
  const error = new CairnError('method_not_allowed', `Cannot answer this method here: there are ${allow}`);
  return refusal(error, request.id, ['Allow', allow]);
}

/** What would be taken, where a body's type or coding is not (RFC 9110 §15.5.16, RFC 5789 §2.2). */
function takenInstead(body: RouteBody, { fields }: Request): readonly string[] {
  if (fields.get('content-encoding') !== undefined) return ['Accept-Encoding', 'identity'];
  return [body.purpose === 'patch' ? 'Accept-Patch' : 'Accept', mediaTypesOf(body).join(', ')];
}
