/**
 * The bounds of what callers and files can make the server accept, keep or wait for. Each
 * name has its unit. Options (`src/config/options.ts`) set further bounds. A number that
 * bounds nothing from outside is written where it is used.
 */

/** All bounds. */
const limits = {
  // Bodies in JSON (src/base/json.ts).
  /** The largest request body, except for one record of a declared collection on one machine. */
  bodyBytesMax: 1024 * 1024,
  /** The largest record of a declared collection as JSON, and such a body. */
  recordBytesMax: 2 * 1024 * 1024,
  /**
   * The largest request body of a caller that has not signed in, if callers can. All such
   * bodies that arrive at a time fit into memory.
   */
  anonymousBodyBytesMax: 64 * 1024,
  /** The deepest nesting of a JSON body: `[]` has depth 1. */
  jsonDepthMax: 32,
  /** The most records that one request may create. */
  elementsMax: 1000,
  /** The most issues of a body that are told; beyond it no more are looked for. */
  issuesMax: 100,
  /** The most values in a JSON body, at any depth: reading them takes about 50 ms. */
  jsonValuesMax: 100_000,
  /** The most members of one object in a JSON body: reading 50,000 would take as long as all values. */
  jsonMembersMax: 5000,

  // Requests and connections (src/http).
  /**
   * The largest head of a request: request line and all fields together; beyond it 431.
   */
  fieldsBytesMax: 16 * 1024,
  /** The most fields of one request; beyond it 431. */
  fieldsCountMax: 100,
  /**
   * The longest time from the connection (or the previous response) to the end of the
   * fields, once their first byte has arrived.
   */
  headersTimeoutMs: 10_000,
  /**
   * The longest time from the first byte of a request to the last byte of its body: 1 MiB
   * at 140 kbit/s.
   */
  requestTimeoutMs: 60_000,
  /**
   * How long an idle connection is kept: longer than 60 s, after which common load
   * balancers close theirs.
   */
  keepAliveTimeoutMs: 75_000,
  /**
   * The longest time in which a client may accept no byte of a response that is being
   * sent.
   */
  slowReaderTimeoutMs: 30_000,
  /**
   * The most requests of a connection that are answered in one go; those that arrive together with
   * them wait until others have been served.
   */
  pipelinedRequestsMax: 16,
  /**
   * The most connections; fewer if the process may have fewer descriptors. Further ones are refused.
   */
  connectionsMax: 8192,
  /**
   * The part of V8's heap for connections, half of it for one network. Each can take 24 KiB with the
   * fields of a request, and 128 KiB with TLS.
   */
  connectionsHeapShareMax: 1 / 8,
  /** The most connections from one address (for IPv6, one /48) that is not a trusted proxy. */
  connectionsPerAddressMax: 1024,
  /** The most TLS handshakes that have begun and not ended; further ones wait. */
  handshakesMax: 64,
  /** The most of these handshakes of one address (for IPv6, one /48). */
  handshakesPerNetworkMax: 16,
  /**
   * The number of connections from which on responses that are ready are sent together at
   * the end of a loop turn.
   */
  gatheringConnectionsMin: 8,
  /**
   * The part of V8's heap for bodies that arrive and responses that wait for their readers, with
   * what they are made of, in all; beyond it the caller with the most loses its oldest, or 503.
   */
  waitingHeapShareMax: 1 / 8,
  /** The part of that memory for one caller; beyond it 503. */
  waitingPerCallerShareMax: 1 / 4,
  /**
   * The largest body that does not count in this memory, so that sign-ins are
   * always received.
   */
  uncountedBodyBytesMax: 4096,
  /**
   * The most requests that wait for a disk, a hash or the like, and not for their sender;
   * beyond it 503.
   */
  requestsInFlightMax: 2048,
  /** The most of these requests of one caller; beyond it 503. */
  requestsInFlightPerCallerMax: 512,
  /**
   * How long requests that take over 0.1 ms are answered in one turn of the event loop; further
   * ones wait, and their callers take turns.
   */
  turnMs: 20,
  /**
   * How long a connection that ends is still read, so that a client that goes on sending
   * receives the response.
   */
  lingerTimeoutMs: 1000,
  /** The time that a stopping server gives the requests in flight. */
  drainTimeoutMs: 30_000,
  /** The longest `Response` of a handler of a program, which is read whole; beyond it 500. */
  responseBytesMax: 64 * 1024 * 1024,

  // Callers and their credentials (src/auth).
  /** The longest access token. */
  accessTokenBytesMax: 4096,
  /** The lifetime of an access token that Cairn issues. */
  accessTokenSeconds: 15 * 60,
  /**
   * The longest lifetime of an access token that another holder of the key issues. A
   * retired key verifies for as long.
   */
  accessTokenLifetimeSecondsMax: 24 * 60 * 60,
  /** The most that the clock of a signer may be ahead. */
  clockSkewSecondsMax: 60,
  /** The most access tokens that are remembered as verified; about 500 bytes each. */
  verifiedTokensMax: 10_000,
  /** The shortest key: as long as the hash of HS256 (RFC 7518 §3.2). */
  keyBytesMin: 32,
  /** The longest key. */
  keyBytesMax: 1024,
  /** The longest password, in UTF-8. */
  passwordBytesMax: 1024,
  /**
   * The most password hashes at a time; a third would delay the syncs of the store, which
   * use the same threads.
   */
  passwordHashesMax: 2,
  /**
   * The most password hashes that wait, at most half of them of one caller:
   * about 4 s at the usual cost; beyond it 503.
   */
  passwordQueueLengthMax: 32,
  /** The time after its use in which a refresh token still gets the same successor. */
  refreshRepeatSecondsMax: 30,
  /** The longest time that a cookie session lives without a request. */
  cookieIdleSecondsMax: 12 * 60 * 60,
  /** The longest time that a cookie session lives. */
  cookieLifetimeSecondsMax: 7 * 24 * 60 * 60,
  /** The most secrets of sessions with a remembered hash; about 200 bytes each. */
  sessionSecretsMax: 10_000,
  /** The most sessions of one user; a further one ends the oldest. */
  sessionsPerUserMax: 50,
  /** The most API keys of one user. */
  apiKeysPerUserMax: 50,
  /** The longest time that a family of refresh tokens lives without being used. */
  refreshIdleSecondsMax: 14 * 24 * 60 * 60,
  /** The longest time that a family of refresh tokens lives. */
  refreshLifetimeSecondsMax: 30 * 24 * 60 * 60,
  /** The longest `User-Agent` that is kept with a session, in UTF-16 code units. */
  sessionAgentLengthMax: 200,
  /**
   * The most names in each of the throttle's counts; beyond it the one counted longest ago is
   * forgotten. About 300 bytes each.
   */
  throttleEntriesMax: 32_768,

  // Lists (src/lists).
  /** The longest time that all lists together hold the event loop at once. */
  sliceMs: 1,
  /** The most lists without a limit that are being made or sent, in all; beyond it 503. */
  listsMax: 32,
  /** The most lists without a limit that are being made or sent for one caller; beyond it 503. */
  listsPerCallerMax: 8,
  /** The most records of a page. */
  pageRecordsMax: 1000,
  /** The most orders in which the records of one collection are kept. */
  keptOrdersMax: 4,
  /** The largest share of V8's heap for the orders of all collections when one is added. */
  keptOrdersHeapShareMax: 1 / 16,
  /**
   * The part of V8's heap for replaced records that lists being sent still keep; beyond it the
   * oldest of these lists is broken off.
   */
  replacedHeapShareMax: 1 / 16,
  /** The longest address of a field, in UTF-16 code units. */
  urlLengthMax: 2048,
  /** The most bytes of a `json` field if its declaration does not say it. */
  jsonFieldBytesMax: 64 * 1024,
  /** The most conditions of a list, of which repeated ones that mean any of their values are one. */
  conditionsMax: 100,
  /** The most fields in `sort`. */
  sortTermsMax: 3,
  /**
   * The longest text of `q`, in UTF-16 code units: it is compared at each place of each
   * text.
   */
  searchLengthMax: 64,
  /** The most words of `q`. */
  searchWordsMax: 8,
  /** The longest text of a filter with `contains`, in UTF-16 code units, for the same reason. */
  containedTextMax: 200,
  /**
   * How much of a text a list is sorted by, in UTF-16 code units: a cursor contains it, and has
   * to fit into a request line.
   */
  sortedTextMax: 200,

  // Safe retries (src/collections).
  /** The longest `Idempotency-Key`, in characters. */
  keyLengthMax: 255,
  /**
   * The most idempotency keys that are kept for one caller; beyond it the oldest is
   * removed.
   */
  keysPerCallerMax: 1000,
  /**
   * The most bytes of memory that all replies take which are kept for idempotency keys; beyond it
   * the caller with the most loses its oldest ones.
   */
  keptBytesMax: 64 * 1024 * 1024,
  /** The part of the memory for records that these replies may take, if that is less. */
  keptMemoryShareMax: 1 / 8,
  /**
   * The largest body of a request with an idempotency key if processes share data; beyond it 413.
   */
  keyedBodyBytesMax: 512 * 1024,
  /** The time for which an idempotency key stands for its request. */
  keySecondsMax: 24 * 60 * 60,
  /** The most cookies called `sid` in a request; beyond it 400. */
  sessionCookiesMax: 4,
  /** The time for which an invitation is good. */
  invitationSeconds: 24 * 60 * 60,

  // References between records (src/collections).
  /** The most records that are removed or changed when one is removed; beyond it 409. */
  referrersMax: 10_000,
  /**
   * The part of V8's heap, in UTF-16 code units, for the JSON of the records from which a removal
   * takes references: it is in memory several times; beyond it 409.
   */
  clearedHeapShareMax: 1 / 32,
  /** The most records of one `referring` that `beforeWrite` may read; beyond it a fault, 500. */
  hookRecordsMax: 50_000,
  /** The most records that are embedded in a record for each name in `embed`. */
  embeddedMax: 100,
  /** The most records that a filter by a reference finds in its index; else all are read. */
  indexedRecordsMax: 16_384,

  // The change feed (src/collections).
  /** The most open streams of the change feed, in all; beyond it 503. */
  listenersMax: 2048,
  /** The most open streams of the change feed of one caller; beyond it 503. */
  listenersPerCallerMax: 64,
  /** The most changes that are remembered; beyond it the oldest are removed. */
  eventsMax: 10_000,
  /** About how much memory the remembered changes may take, in bytes. */
  eventsBytesMax: 16 * 1024 * 1024,
  /** The part of V8's heap that they may take, if that is less. */
  eventsHeapShareMax: 1 / 16,
  /** The most text that is sent to one stream at a time, in UTF-16 code units. */
  pieceLengthMax: 64 * 1024,
  /** The time after which a stream gets at least a comment, and its caller is checked again. */
  heartbeatMs: 15_000,
  /**
   * The pause between two deliveries to all streams, for each stream: many changes at
   * once leave time for requests.
   */
  msPerListener: 0.3,

  // The store (src/store).
  /** The most commits that share one write and one sync. */
  groupTransactionsMax: 1024,
  /**
   * The largest group of several commits: from a quarter on, it accepts no more. A single larger
   * transaction is a group of its own.
   */
  groupBytesMax: 1024 * 1024,
  /**
   * How long transactions that change nothing, such as refused ones, are run at once: they use
   * no bytes, but a thousand records each may have been tried. Further ones wait for a turn of
   * the loop.
   */
  refusingMs: 10,
  /** The most writes that wait for the disk; beyond it 503. */
  waitingTransactionsMax: 16_384,
  /**
   * The size of the journal above which a checkpoint is made, if it is also larger than
   * the snapshots.
   */
  checkpointBytesMin: 16 * 1024 * 1024,
  /**
   * The part of V8's heap for records, as they are counted, and for what a server without records
   * has in use; beyond it writes that grow are refused (507).
   */
  recordsHeapShareMax: 0.6,
  /** The part of V8's heap that a server without records uses. */
  emptyServerBytes: 12 * 1024 * 1024,
  /**
   * The space that stays free on the disk in addition to what the next checkpoint needs;
   * with less, writes that grow are refused (507).
   */
  spareBytes: 1024 * 1024,
} as const;
export { limits };

/** The type of these bounds, for tests that use other values. */
export type Limits = Record<keyof typeof limits, number>;
