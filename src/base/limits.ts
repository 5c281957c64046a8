/**
 * What callers and files can make the server take, keep or wait for, named with units; a few are the defaults of
 * options (`src/settings.ts`, which has the others). What only shapes how something is done stands where it is done.
 */
export const limits = {
  /** The largest request body of whoever has not signed in, so that all that arrive at a time fit into memory. */
  anonymousBodyBytesMax: 64 * 1024,
  /** How deep a JSON body may nest: `[]` is 1. */
  jsonDepthMax: 32,
  /** How many values a JSON body may have, at any depth: to read them takes some 5 ms. */
  jsonValuesMax: 10_000,

  // Requests and connections (src/http)
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
  /** How long a reader may take for each 64 KiB of an answer: 17 kbit/s. */
  slowReaderTimeoutMs: 30_000,
  /** In all; beyond it idle ones are closed, and new ones refused. */
  connectionsMax: 8192,
  /** Of one address (of IPv6, one /64) that is no trusted proxy's. */
  connectionsPerAddressMax: 1024,
  /** From so many connections on, replies that are ready at once are sent together at the end of a loop turn. */
  gatheringConnectionsMin: 8,
  /** Then the connection is closed, so that load spreads anew over several servers now and then. */
  requestsPerConnectionMax: 10_000,
  /** Requests of one connection that wait for the answers before theirs; beyond it, no more are read. */
  pipelinedRequestsMax: 64,
  /** The same in all, since a read brings thousands and each takes 3 KB; beyond it their connection is closed. */
  waitingRequestsMax: 16_384,
  /** Bodies that are still being received, all together; beyond it 503. */
  arrivingBytesMax: 128 * 1024 * 1024,
  /** Requests that wait for a disk, a hash or the like, and not for their sender; beyond it 503. */
  requestsInFlightMax: 2048,
  /** Unread content of a refused request that is still taken in, so that its sender gets to read the answer. */
  lingerBytesMax: 1024 * 1024,
  /** How long it is taken in. */
  lingerTimeoutMs: 1000,
  /** How long a stopping server waits for the requests in flight. */
  drainTimeoutMs: 30_000,

  // Callers (src/auth)
  accessTokenBytesMax: 4096,
  accessTokenLifetimeSecondsMax: 24 * 60 * 60,
  /** How far a signer's clock may be ahead of ours. */
  clockSkewSecondsMax: 60,
  /** Access tokens that are remembered as verified; some 500 bytes each. */
  verifiedTokensMax: 10_000,
  /** As long as the hash of HS256 (RFC 7518 §3.2). */
  keyBytesMin: 32,
  keyBytesMax: 1024,
  passwordBytesMax: 1024,
  /** At once; a third one would delay the store's syncs, which share the threads. */
  passwordHashesMax: 2,
  /** Hashes that wait for their turn: some 4 s at the usual cost; beyond it 503. */
  passwordQueueLengthMax: 32,
  /** How long after its use a refresh token still gets the successor that it got first. */
  refreshRepeatSecondsMax: 30,
  /** How long a family of refresh tokens lives without being used, and how long at most. */
  refreshIdleSecondsMax: 14 * 24 * 60 * 60,
  refreshLifetimeSecondsMax: 30 * 24 * 60 * 60,
  /** Sessions that have ended and are removed with one commit. */
  sessionsSweptMax: 64,
  /** Of a `User-Agent` that is kept with a session, in UTF-16 code units. */
  sessionAgentLengthMax: 200,
  /** Of each of the throttle's tables; 8 bytes each. */
  throttlePlaces: 32_768,

  // Lists (src/resources)
  /** How long a list, a sort or a scan holds the event loop at a time. */
  sliceMs: 1,
  /** The most records of a page. */
  pageRecordsMax: 1000,
  /** Fields in one `sort`. */
  sortTermsMax: 3,
  /** Texts that may be longer cannot be sorted by: a cursor carries them, and has to fit into a request line. */
  sortableTextMax: 500,
  /** Sorted orders that are kept for each collection; one of 1,000,000 records takes 8 MB. */
  sortedOrdersMax: 4,
  /** Records in lists that are sorted or sent whole, for each collection; 8 bytes each; beyond it 503. */
  listedRecordsMax: 8 * 1024 * 1024,
  /** Answers to short lists that are kept until something is written, for each collection. */
  keptListsMax: 64,
  /** How long a list's text may be to be kept, in UTF-16 code units. */
  keptListLengthMax: 16 * 1024,

  // The store (src/store)
  /** Commits that share one write and one sync. */
  groupTransactionsMax: 1024,
  /** A group that has this many bytes takes no more; a single larger transaction is a group of its own. */
  groupBytesMax: 1024 * 1024,
  /** Writes that wait for the disk; beyond it 503. */
  pendingTransactionsMax: 16_384,
  pendingBytesMax: 64 * 1024 * 1024,
  /** A checkpoint is due when the journal is larger than this and than the snapshots. */
  checkpointBytesMin: 4 * 1024 * 1024,
  /** Put aside so that a full disk still takes removals. */
  reserveBytes: 1024 * 1024,
  /** How much of it sign-ins and refreshes may take. */
  whenFullBytesMax: 256 * 1024,
} as const;

/** The same bounds, where others take their place. */
export type Limits = Record<keyof typeof limits, number>;
