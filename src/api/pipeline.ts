import { authorize, type Principal } from '../auth/access.ts';
import { CairnError } from '../base/errors.ts';
import { parseJsonBytes } from '../base/json.ts';
import { limits } from '../base/limits.ts';
import { checkContentType } from '../http/accept.ts';
import { corsFields, isPreflight, preflightFields } from '../http/cross-site.ts';
import { internal } from '../http/exchanger.ts';
import { parseQuery } from '../http/head.ts';
import type { Handle, Reply, Request } from '../http/message.ts';
import { Router, type Match, type MethodNotAllowed } from '../http/router.ts';
import { authenticate, refuseRemote, type Authenticators } from './authenticate.ts';
import { patchTypes, type Body } from './body.ts';
import { problems } from './problems.ts';
import { noContent, refusal, refuseVersion, unknownPath } from './replies.ts';
import { parseId, preferredType, type Call, type Endpoint, type Route } from './route.ts';

export interface PipelineOptions extends Authenticators {
  readonly endpoints: readonly Endpoint[];
  /** The largest body of a caller that has authenticated. */
  readonly bodyBytesMax: number;
  /** Brings in what other nodes have had acknowledged. Absent: there are no other nodes. */
  readonly confirm?: (() => Promise<void>) | undefined;
  /** Called with every failure that is a bug, never with an operating error. */
  readonly onBug: (error: unknown, request: Request) => void;
}

/**
 * The pipeline: match → authenticate → authorize → read → validate → handle → reply. It never throws or rejects, and
 * returns the reply itself, not a promise, where nothing has to be waited for.
 */
export function createPipeline(options: PipelineOptions): Handle {
  const router = new Router<Endpoint>(
    options.endpoints.map((endpoint) => {
      const { method, path } = endpoint.route;
      return { method, pattern: path, value: endpoint };
    }),
  );

  return function handle(request) {
    const match = router.match(request.method, request.target);
    const finish = (reply: Reply): Reply => withCors(reply, request, options);
    const fail = (error: unknown): Reply => finish(refuse(error, request, match, options));
    try {
      const reply = answer(request, match, options);
      return reply instanceof Promise ? reply.then(finish, fail) : finish(reply);
    } catch (error) {
      if (options.confirm === undefined || !isUnknownHere(error)) return fail(error);
      return options.confirm().then(() => answer(request, match, options)).then(finish, fail);
    }
  };
}

/** Whether another node may know the credentials that were refused here. */
function isUnknownHere(error: unknown): boolean {
  return error instanceof CairnError && (error.code === 'invalid_session' || error.code === 'invalid_token');
}

/** Takes a request through the pipeline. @throws CairnError */
function answer(request: Request, match: Match<Endpoint>, options: PipelineOptions): Reply | Promise<Reply> {
  if (!options.required) refuseRemote(request);
  // RFC 9110 §9.3.7: OPTIONS * asks about the server, not about a resource.
  if (request.target === '*') return noContent();
  if (match.kind === 'not-found') throw unknownPath(request, options.endpoints);
  if (match.kind === 'method-not-allowed') return otherMethod(request, match);
  const { route } = match.value;
  request.route = route.path;

  const id = parseId(match.parameter);
  const principal = admit(route, request, id, options);
  checkConditions(route, request, match.query);

  const call = { request, route, principal, id, query: match.query, body: undefined };
  if (route.body === undefined) return match.value.handle(call);
  return answerBody(match.value, route.body, call, options);
}

/** The further steps of a request with a body: read, validate, handle. @throws CairnError */
async function answerBody(
  endpoint: Endpoint,
  body: Body<unknown>,
  call: Call,
  options: PipelineOptions,
): Promise<Reply> {
  const { request, route, id } = call;
  checkContent(route, body, request);
  const bytes = await request.receiveBody(bytesMaxOf(call.principal, options));
  const isAbsent = body.optional === true && bytes.length === 0;
  if (body.optional === true && !isAbsent) checkContentType(request.fields, body.mediaTypes);
  const json = isAbsent ? {} : parseJsonBytes(bytes);

  // A body can take a minute to arrive, and the session may have ended meanwhile.
  const principal = call.principal.kind === 'session' ? admit(route, request, id, options) : call.principal;
  const validated = body.validate(json, principal);
  return await endpoint.handle({ ...call, principal, body: validated });
}

/** Authenticates the caller, and authorizes it for the route. @throws CairnError */
function admit(route: Route, request: Request, id: number, options: PipelineOptions): Principal {
  const principal = authenticate(route, request, options);
  request.userId = principal.userId;
  authorize(route.access, principal, id);
  return principal;
}

/** @throws CairnError where the request asks for something that the route cannot do, or has not */
function checkConditions(route: Route, request: Request, query: string): void {
  if (route.reply.schema !== undefined && preferredType(route, request) === undefined) {
    const { mediaType = 'application/json' } = route.reply;
    throw new CairnError('not_acceptable', `Cannot show the resource as asked: it is available as ${mediaType}`);
  }
  if (route.method !== 'GET' && route.conditional !== true) refuseVersion(request);
  if (route.query === undefined && parseQuery(query).size > 0) {
    throw new CairnError('invalid_query', 'Cannot read the query: this route takes no parameters');
  }
}

/** @throws CairnError for a body that need not be read to be refused */
function checkContent(route: Route, body: Body<unknown>, { fields }: Request): void {
  // RFC 9110 §14.5: a part that were taken for the whole would remove the rest.
  if (route.method === 'PUT' && fields.get('content-range') !== undefined) {
    throw new CairnError('malformed_request', 'Cannot read the body: Content-Range is not supported');
  }
  if (body.optional !== true) checkContentType(fields, body.mediaTypes);
}

function bytesMaxOf({ kind }: Principal, { bodyBytesMax }: PipelineOptions): number {
  return kind === 'anonymous' ? Math.min(bodyBytesMax, limits.anonymousBodyBytesMax) : bodyBytesMax;
}

/** The reply to a known path without a route for this method: OPTIONS is answered, any other method is refused. */
function otherMethod(request: Request, { allow }: MethodNotAllowed): Reply {
  const allowed = ['Allow', allow, ...(allow.includes('PATCH') ? ['Accept-Patch', patchTypes.join(', ')] : [])];
  if (isPreflight(request.method, request.fields)) return noContent([...allowed, ...preflightFields(allow)]);
  if (request.method === 'OPTIONS') return noContent(allowed);
  const supported = allow.replace(/, (\w+)$/, ' and $1');
  const error = new CairnError('method_not_allowed', `Method not allowed: this path supports ${supported}`);
  return refusal(error, request.id, ['Allow', allow]);
}

/** The reply to a request that failed: problem details, or for a browser without a session the way to sign in. */
function refuse(error: unknown, request: Request, match: Match<Endpoint>, options: PipelineOptions): Reply {
  if (!(error instanceof CairnError)) {
    options.onBug(error, request);
    return refusal(internal, request.id);
  }
  const route = match.kind === 'found' ? match.value.route : undefined;
  const [status] = problems[error.code];
  const wantsPage = route?.signInAt !== undefined && preferredType(route, request) === 'text/html';
  if (wantsPage && (status === 401 || status === 403)) return noContent(['Location', route.signInAt], 303);
  const supported = status === 415 && route?.body !== undefined ? supportedInstead(route.body, request) : [];
  return refusal(error, request.id, supported);
}

/** What a route supports where a body's type or coding is not supported (RFC 9110 §15.5.16, RFC 5789 §2.2). */
function supportedInstead({ mediaTypes }: Body<unknown>, { fields }: Request): readonly string[] {
  if (fields.get('content-encoding') !== undefined) return ['Accept-Encoding', 'identity'];
  return [mediaTypes === patchTypes ? 'Accept-Patch' : 'Accept', mediaTypes.join(', ')];
}

function withCors(reply: Reply, { fields }: Request, { allowedOrigins }: PipelineOptions): Reply {
  if (allowedOrigins.size === 0) return reply;
  return { ...reply, fields: [...reply.fields, ...corsFields(fields, allowedOrigins)] };
}
