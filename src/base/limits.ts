/**
 * Bounds of everything that callers and files can make the server accept, hold or wait for. Each
 * name has its unit. Options (`src/config/options.ts`) set further bounds; other constants stand
 * where they are used.
 */

const limits = {
  // Bodies in JSON (src/base/json.ts).
  /** The largest request body, except for one record of a declared collection on one machine. */
  bodyBytesMax: 1024 * 1024,
  /** The largest record of a declared collection as JSON, and its request body. */
  recordBytesMax: 2 * 1024 * 1024,
  /**
   * The largest request body without authentication, if callers can sign in. All such bodies that
   * arrive at once fit into memory.
   */
  anonymousBodyBytesMax: 64 * 1024,
  /** The deepest nesting of a JSON body: `[]` has depth 1. */
  jsonDepthMax: 32,
  /** The most records that one request may create. */
  elementsMax: 1000,
  /** The most issues reported for a body; checking stops there. */
  issuesMax: 100,
  /** The most values in a JSON body, at any depth: parsing them takes about 50 ms. */
  jsonValuesMax: 100_000,
  /** The most members of one JSON object: parsing 50,000 would take as long as all values. */
  jsonMembersMax: 5000,

  // Requests and connections (src/http).
  /** The largest request head: request line and all header fields together; beyond it 431. */
  fieldsBytesMax: 16 * 1024,
  /** The most header fields of a request; beyond it 431. */
  fieldsCountMax: 100,
  /**
   * The longest time from the connection, or the previous response, to the end of the header
   * fields, once their first byte has arrived.
   */
  headersTimeoutMs: 10_000,
  /** The longest time from a request's first byte to its last: 1 MiB at 140 kbit/s. */
  requestTimeoutMs: 60_000,
  /**
   * The lifetime of an idle connection: longer than the 60 s after which common load balancers
   * close theirs.
   */
  keepAliveTimeoutMs: 75_000,
  /** The longest time without progress while a client reads a response. */
  slowReaderTimeoutMs: 30_000,
  /** The most requests that arrive together on a connection and get responses; then it ends. */
  pipelinedRequestsMax: 16,
  /**
   * The most connections; fewer if the process may have fewer descriptors. Further ones are
   * refused.
   */
  connectionsMax: 8192,
  /**
   * The share of V8's heap for connections, half of it for one network. Each can take 24 KiB with
   * the header fields of a request, and 128 KiB with TLS.
   */
  connectionsHeapShareMax: 1 / 8,
  /** The most connections from one address (for IPv6, one /48) that is not a trusted proxy. */
  connectionsPerAddressMax: 1024,
  /** The most TLS handshakes in progress; further ones wait. */
  handshakesMax: 64,
  /** The most handshakes in progress from one address (for IPv6, one /48). */
  handshakesPerNetworkMax: 16,
  /**
   * With at least this many connections, responses that are ready are sent together at the end of a
   * loop turn.
   */
  gatheringConnectionsMin: 8,
  /**
   * The share of V8's heap for arriving bodies and for responses that wait for their readers,
   * including what they are made from. Beyond it the largest holder loses its oldest, or the
   * response is 503.
   */
  waitingHeapShareMax: 1 / 8,
  /** The share of that memory for one caller; beyond it 503. */
  waitingPerCallerShareMax: 1 / 4,
  /** The largest body that does not count in this memory, so that sign-ins always get through. */
  uncountedBodyBytesMax: 4096,
  /**
   * The most requests that wait for a disk, a hash or the like, rather than for their body; beyond
   * it 503.
   */
  requestsInFlightMax: 2048,
  /** The most of these requests for one caller; beyond it 503. */
  requestsInFlightPerCallerMax: 512,
  /**
   * The time spent in one turn of the event loop on requests that take over 0.1 ms; further ones
   * wait, and their callers take turns.
   */
  turnMs: 20,
  /**
   * The longest time that a closing connection is still read, so that a client that keeps sending
   * receives the response.
   */
  lingerTimeoutMs: 1000,
  /** The time that a stopping server gives requests in flight. */
  drainTimeoutMs: 30_000,
  /** The longest `Response` of a program's handler, which is read whole; beyond it 500. */
  responseBytesMax: 64 * 1024 * 1024,

  // Callers and their credentials (src/auth).
  /** The longest access token. */
  accessTokenBytesMax: 4096,
  /** The lifetime of an access token that Cairn issues. */
  accessTokenSeconds: 15 * 60,
  /**
   * The longest lifetime of an access token that another holder of the key issues. A retired key
   * verifies for the same time.
   */
  accessTokenLifetimeSecondsMax: 24 * 60 * 60,
  /** The most that a signer's clock may be ahead. */
  clockSkewSecondsMax: 60,
  /** The most verified access tokens that are cached, about 500 bytes each. */
  verifiedTokensMax: 10_000,
  /** The shortest key: as long as the hash of HS256 (RFC 7518 §3.2). */
  keyBytesMin: 32,
  /** The longest signing key. */
  keyBytesMax: 1024,
  /** The longest password, in UTF-8. */
  passwordBytesMax: 1024,
  /**
   * The most password hashes at a time; a third would delay the syncs of the store, which use the
   * same threads.
   */
  passwordHashesMax: 2,
  /**
   * The most password hashes that wait, at most half of them for one caller: about 4 s at the usual
   * cost; beyond it 503.
   */
  passwordQueueLengthMax: 32,
  /** The time after its use in which a refresh token still gets the same successor. */
  refreshRepeatSecondsMax: 30,
  /** The longest time that a cookie session lives without a request. */
  cookieIdleSecondsMax: 12 * 60 * 60,
  /** The longest time that a cookie session lives. */
  cookieLifetimeSecondsMax: 7 * 24 * 60 * 60,
  /** The most session secrets with a cached hash, about 200 bytes each. */
  sessionSecretsMax: 10_000,
  /** The most sessions of one user; a new one ends the oldest. */
  sessionsPerUserMax: 50,
  /** The most API keys of one user. */
  apiKeysPerUserMax: 50,
  /** The longest time that a family of refresh tokens lives unused. */
  refreshIdleSecondsMax: 14 * 24 * 60 * 60,
  /** The longest time that a family of refresh tokens lives. */
  refreshLifetimeSecondsMax: 30 * 24 * 60 * 60,
  /** The longest `User-Agent` stored with a session, in UTF-16 code units. */
  sessionAgentLengthMax: 200,
  /**
   * The most entries in each of the throttle's counts, about 300 bytes each; beyond it the least
   * recently counted is forgotten.
   */
  throttleEntriesMax: 32_768,

  // Lists (src/lists).
  /** The longest time that all lists together hold the event loop at once. */
  sliceMs: 1,
  /** The most lists without a limit in progress; beyond it 503. */
  listsMax: 32,
  /** The most of these lists for one caller; beyond it 503. */
  listsPerCallerMax: 8,
  /** The most records of a page. */
  pageRecordsMax: 1000,
  /** The most sort orders kept in memory for one collection. */
  keptOrdersMax: 4,
  /** The largest share of V8's heap for the orders of all collections when one is added. */
  keptOrdersHeapShareMax: 1 / 16,
  /**
   * The share of V8's heap for replaced records that lists in progress still hold; beyond it the
   * oldest of these lists is aborted.
   */
  replacedHeapShareMax: 1 / 16,
  /** The longest value of a `url` field, in UTF-16 code units. */
  urlLengthMax: 2048,
  /** The default limit of a `json` field. */
  jsonFieldBytesMax: 64 * 1024,
  /** The most conditions of a list; repeated ones that are alternatives count as one. */
  conditionsMax: 100,
  /** The most fields in `sort`. */
  sortTermsMax: 3,
  /**
   * The longest text of `q`, in UTF-16 code units: it is compared at each position of each text.
   */
  searchLengthMax: 64,
  /** The most words of `q`. */
  searchWordsMax: 8,
  /** The longest text of a `contains` filter, in UTF-16 code units, for the same reason. */
  containedTextMax: 200,
  /**
   * The prefix length that sorting compares, in UTF-16 code units: a cursor contains the prefix, and
   * has to fit into a request line.
   */
  sortedTextMax: 200,

  // Safe retries (src/collections).
  /** The longest `Idempotency-Key`, in characters. */
  keyLengthMax: 255,
  /** The most idempotency keys kept for one caller; beyond it the oldest is removed. */
  keysPerCallerMax: 1000,
  /**
   * The memory for all responses kept for idempotency keys; beyond it the largest holder loses its
   * oldest.
   */
  keptBytesMax: 64 * 1024 * 1024,
  /** The share of the memory for records that these responses may take, if that is less. */
  keptMemoryShareMax: 1 / 8,
  /** The largest request body with an idempotency key if processes share data; beyond it 413. */
  keyedBodyBytesMax: 512 * 1024,
  /** The lifetime of an idempotency key. */
  keySecondsMax: 24 * 60 * 60,
  /** The most cookies called `sid` in a request; beyond it 400. */
  sessionCookiesMax: 4,
  /** The lifetime of an invitation. */
  invitationSeconds: 24 * 60 * 60,

  // References between records (src/collections).
  /** The most records removed or changed by removing one; beyond it 409. */
  referrersMax: 10_000,
  /**
   * The share of V8's heap for the JSON of records whose references a removal clears, in UTF-16
   * code units; beyond it 409. The JSON is in memory several times.
   */
  clearedHeapShareMax: 1 / 32,
  /** The most records that one `referring` of `beforeWrite` may read; beyond it 500. */
  hookRecordsMax: 50_000,
  /** The most records embedded in a record for each name in `embed`. */
  embeddedMax: 100,
  /** The most records that a filter by reference finds by its index; else it scans all records. */
  indexedRecordsMax: 16_384,

  // The change feed (src/collections).
  /** The most open streams of the change feed; beyond it 503. */
  listenersMax: 2048,
  /** The most of these streams for one caller; beyond it 503. */
  listenersPerCallerMax: 64,
  /** The most changes remembered; beyond it the oldest are dropped. */
  eventsMax: 10_000,
  /** The approximate memory for remembered changes, in bytes. */
  eventsBytesMax: 16 * 1024 * 1024,
  /** The share of V8's heap for them, if that is less. */
  eventsHeapShareMax: 1 / 16,
  /** The most text sent to one stream at a time, in UTF-16 code units. */
  pieceLengthMax: 64 * 1024,
  /** The longest silence of a stream; then it gets a comment, and its caller is checked again. */
  heartbeatMs: 15_000,
  /**
   * The pause between two deliveries to all streams, for each stream, so that a burst of changes
   * leaves time for requests.
   */
  msPerListener: 0.3,

  // The store (src/store).
  /** The most commits that share one write and one sync. */
  groupTransactionsMax: 1024,
  /**
   * The largest group of several commits; from a quarter of it on, a group is closed. A single
   * larger transaction is a group by itself.
   */
  groupBytesMax: 1024 * 1024,
  /**
   * The time in which transactions that change nothing, such as refused ones, run at once: they use
   * no bytes, but each may have tried a thousand records. Further ones wait for the next turn of
   * the loop.
   */
  refusingMs: 10,
  /** The most writes that wait for the disk; beyond it 503. */
  waitingTransactionsMax: 16_384,
  /** The journal size above which a checkpoint begins, if it is also larger than the snapshots. */
  checkpointBytesMin: 16 * 1024 * 1024,
  /**
   * The share of V8's heap for an empty server and for records, by their estimated size; beyond
   * it growing writes get 507.
   */
  recordsHeapShareMax: 0.6,
  /** The part of V8's heap that a server without records uses. */
  emptyServerBytes: 12 * 1024 * 1024,
  /**
   * The disk space kept free in addition to what the next checkpoint needs; with less, growing
   * writes get 507.
   */
  spareBytes: 1024 * 1024,
} as const;
export { limits };

/** The type of these bounds, for tests that use other values. */
export type Limits = Record<keyof typeof limits, number>;
