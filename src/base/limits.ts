/**
 * Bounds of what callers and files can make the server accept, keep or wait for, named with their units. Options
 * (`src/config/settings.ts`) have further ones. A number that bounds nothing from outside stands where it is used.
 */

/** Bodies in JSON (src/base/json.ts). */
const bodies = {
  /** The largest request body. */
  bodyBytesMax: 1024 * 1024,
  /** The largest request body of a caller that has not signed in, so that all that arrive at a time fit into memory. */
  anonymousBodyBytesMax: 64 * 1024,
  /** How deep a JSON body may nest: `[]` is 1. */
  jsonDepthMax: 32,
  /** Records that one request may create. */
  elementsMax: 1000,
  /** How many values a JSON body may have, at any depth: to read them takes some 5 ms. */
  jsonValuesMax: 10_000,
} as const;

/** Requests and connections (src/http). */
const connections = {
  /** The request line and all fields together; beyond it 431. */
  fieldsBytesMax: 16 * 1024,
  /** Of one request; beyond it 431. */
  fieldsCountMax: 100,
  /** From the connection (or the answer before) to the end of the fields, once their first byte is there. */
  headersTimeoutMs: 10_000,
  /** From the first byte of a request to the last one of its body: 1 MiB at 140 kbit/s. */
  requestTimeoutMs: 60_000,
  /** How long an idle connection is kept: longer than the 60 s after which usual load balancers drop theirs. */
  keepAliveTimeoutMs: 75_000,
  /** How long a reader may take nothing of an answer that is not sent whole. */
  slowReaderTimeoutMs: 30_000,
  /** In all; beyond it idle ones are closed, and new ones refused. */
  connectionsMax: 8192,
  /** Of one address (of IPv6, one /64) that is no trusted proxy's. */
  connectionsPerAddressMax: 1024,
  /** From so many connections on, replies that are ready at once are sent together at the end of a loop turn. */
  gatheringConnectionsMin: 8,
  /** Memory of what piles up behind replies that are not ready or not taken: each connection has an equal share. */
  piledBytesMax: 64 * 1024 * 1024,
  /** Bodies that are still being received: a quarter is for callers that have not signed in; beyond it 503. */
  arrivingBytesMax: 128 * 1024 * 1024,
  /** The same of one caller. */
  arrivingBytesPerCallerMax: 8 * 1024 * 1024,
  /** A body up to this size counts for neither, so that sign-ins are always received. */
  uncountedBodyBytesMax: 4096,
  /** Requests that wait for a disk, a hash or the like, and not for their sender; beyond it 503. */
  requestsInFlightMax: 2048,
  /** How long a connection that ends is still read, so that a caller that goes on sending gets to read the answer. */
  lingerTimeoutMs: 1000,
  /** How long a stopping server waits for the requests in flight. */
  drainTimeoutMs: 30_000,
} as const;

/** Callers and their credentials (src/auth). */
const callers = {
  /** The longest access token. */
  accessTokenBytesMax: 4096,
  /** The lifetime of an access token that Cairn issues. */
  accessTokenSeconds: 15 * 60,
  /** The longest lifetime of an access token, for other holders of a key. A retired key verifies for as long. */
  accessTokenLifetimeSecondsMax: 24 * 60 * 60,
  /** How far a signer's clock may be ahead of ours. */
  clockSkewSecondsMax: 60,
  /** Access tokens that are remembered as verified; some 500 bytes each. */
  verifiedTokensMax: 10_000,
  /** The shortest key: as long as the hash of HS256 (RFC 7518 §3.2). */
  keyBytesMin: 32,
  /** The longest key. */
  keyBytesMax: 1024,
  /** The longest password, in UTF-8. */
  passwordBytesMax: 1024,
  /** At once; a third one would delay the store's syncs, which share the threads. */
  passwordHashesMax: 2,
  /** Hashes that wait for their turn: some 4 s at the usual cost; beyond it 503. */
  passwordQueueLengthMax: 32,
  /** Of them, those of callers that have not signed in before: the other places are kept for those that have. */
  passwordQueueStrangersMax: 16,
  /** How long after its use a refresh token still gets the successor that it got first. */
  refreshRepeatSecondsMax: 30,
  /** How long a cookie session lives without a request. */
  cookieIdleSecondsMax: 12 * 60 * 60,
  /** How long a cookie session lives at most. */
  cookieLifetimeSecondsMax: 7 * 24 * 60 * 60,
  /** Sessions of one user; a further one ends the oldest. */
  sessionsPerUserMax: 50,
  /** How long a family of refresh tokens lives without being used. */
  refreshIdleSecondsMax: 14 * 24 * 60 * 60,
  /** How long a family of refresh tokens lives at most. */
  refreshLifetimeSecondsMax: 30 * 24 * 60 * 60,
  /** Of a `User-Agent` that is kept with a session, in UTF-16 code units. */
  sessionAgentLengthMax: 200,
  /** Of each of the throttle's tables; 8 bytes each. */
  throttlePlaces: 32_768,
} as const;

/** Lists (src/lists). */
const lists = {
  /** How long all lists together hold the event loop at a time. */
  sliceMs: 1,
  /** Long lists that are being made or sent, in all; beyond it 503. */
  listsMax: 32,
  /** The same of one caller. */
  listsPerCallerMax: 8,
  /** The most records of a page. */
  pageRecordsMax: 1000,
  /** Fields in one `sort`. */
  sortTermsMax: 3,
  /** The text of `q`, in UTF-16 code units: it is compared at each place of each text. */
  searchLengthMax: 64,
  /** Texts that may be longer cannot be sorted by: a cursor carries them, and has to fit into a request line. */
  sortableTextMax: 500,
} as const;

/** Safe retries (src/collections). */
const retries = {
  /** Of an `Idempotency-Key`, in characters. */
  keyLengthMax: 255,
  /** Keys that are kept of one caller; beyond it the oldest goes. Some 500 bytes each. */
  keysPerCallerMax: 10_000,
  /** The same of all callers. */
  keysMax: 100_000,
  /** How long a key stands for its request. */
  keySecondsMax: 24 * 60 * 60,
} as const;

/** The change feed (src/collections). */
const feed = {
  /** Callers that are told of changes; beyond it 503. */
  listenersMax: 2048,
  /** The same of one caller. */
  listenersPerCallerMax: 64,
  /** Changes that are remembered; beyond it the oldest go. */
  eventsMax: 10_000,
  /** The length of their texts, in UTF-16 code units. */
  eventsLengthMax: 16 * 1024 * 1024,
  /** What one listener is sent at a time, in UTF-16 code units. */
  pieceLengthMax: 64 * 1024,
  /** How often a listener is sent something at least, and its caller looked at again. */
  heartbeatMs: 15_000,
  /** Listeners are told together, and then not again before so much time for each of them is over. */
  msPerListener: 0.3,
} as const;

/** The store (src/store). */
const store = {
  /** Commits that share one write and one sync. */
  groupTransactionsMax: 1024,
  /** A group that has this many bytes takes no more; a single larger transaction is a group of its own. */
  groupBytesMax: 1024 * 1024,
  /** Writes that wait for the disk; beyond it 503. */
  waitingTransactionsMax: 16_384,
  /** A checkpoint is due when the journal is larger than this and than the snapshots. */
  checkpointBytesMin: 4 * 1024 * 1024,
  /** How much of V8's heap may be in use after a garbage collection; beyond it writes that grow are refused (507). */
  heapShareMax: 0.6,
  /** Stays free on the disk beside what the next checkpoint needs: with less, writes that grow are refused (507). */
  spareBytes: 1024 * 1024,
} as const;

/** All bounds. Each has a name of its own, so that the groups only help to read them. */
export const limits = { ...bodies, ...connections, ...callers, ...lists, ...retries, ...feed, ...store } as const;

/** The same bounds, where others take their place. */
export type Limits = Record<keyof typeof limits, number>;
