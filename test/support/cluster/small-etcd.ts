import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** What happens to a request instead of a normal response. */
export type Fault =
  /** The connection is reset before anything is done. */
  | 'lose'
  /** It is done, and the connection is reset. */
  | 'apply-unanswered'
  /** No answer for `heldMs`; then it is refused as timed out, or done. */
  | { readonly heldMs: number; readonly then: 'apply' | 'refuse' }
  /** It is refused with this status, gRPC code and message. */
  | { readonly status: number; readonly code: number; readonly message: string };

export interface SmallRequest {
  /** Index of the member that was asked. */
  readonly member: number;
  readonly path: string;
  readonly body: Json;
}

type Json = { readonly [name: string]: unknown };

interface Version {
  readonly revision: number;
  readonly created: number;
  readonly version: number;
  /** Absent where the key is removed. */
  readonly value: Buffer | undefined;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: number;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

interface Watcher {
  readonly from: string;
  readonly end: string;
  next: number;
  readonly response: ServerResponse;
  readonly member: number;
}

const spaceExceeded = new Refusal(429, 8, 'etcdserver: mvcc: database space exceeded');

/**
 * etcd's JSON gateway over a store in memory, for tests. Each member is a listener on the same state. `conformance.ts`
 * compares it with a real etcd. It can fail as a network, a crash or an operator would make it fail.
 */
export class SmallEtcd {
  /** Called for each request except watches; `undefined` lets it pass. */
  onRequest: (request: SmallRequest) => Fault | undefined = () => undefined;
  /** While true, watches never get the events of what is written. */
  losesEvents = false;
  /** Watches of these members are silent, as if the member was cut off. */
  readonly silent = new Set<number>();
  /** The most bytes of all values, old revisions included. */
  quota = Number.POSITIVE_INFINITY;
  /** The delay of each answer. */
  delayMs = 0;
  readonly users = new Map<string, string>();
  tokenMs = 300_000;
  readonly requests: SmallRequest[] = [];
  #revision = 1;
  #compacted = 0;
  #alarm = false;
  #keys = new Map<string, Version[]>();
  readonly #tokens = new Map<string, number>();
  readonly #watchers = new Set<Watcher>();
  readonly #servers: Server[] = [];
  readonly #cluster = String(Math.floor(Math.random() * 1e15) + 1);

  static async start(members = 1): Promise<SmallEtcd> {
    const etcd = new SmallEtcd();
    for (let member = 0; member < members; member += 1) {
      const server = createServer((request, response) => void etcd.#serve(member, request, response));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      etcd.#servers.push(server);
    }
    return etcd;
  }

  get addresses(): string[] {
    return this.#servers.map((server) => {
      const { port } = server.address() as AddressInfo;
      return `http://127.0.0.1:${port}`;
    });
  }

  get revision(): number {
    return this.#revision;
  }

  /** Ends the connections of a member, and refuses new ones until `revive`. */
  async kill(member: number): Promise<void> {
    const server = this.#servers[member];
    await new Promise((resolve) => {
      server?.close(resolve);
      server?.closeAllConnections();
    });
  }

  async revive(member: number, address: string): Promise<void> {
    const { port } = new URL(address);
    await new Promise<void>((resolve) => this.#servers[member]?.listen(Number(port), '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    for (const member of this.#servers.keys()) await this.kill(member);
  }

  /** The text of a key; `undefined` where it is absent. */
  get(key: string): string | undefined {
    return this.#find(key, this.#revision)?.value?.toString();
  }

  bytesOf(key: string): Buffer {
    return this.#find(key, this.#revision)?.value ?? Buffer.alloc(0);
  }

  /** The keys that begin so, in order. */
  list(prefix: string): string[] {
    return [...this.#keys.keys()].filter((key) => key.startsWith(prefix) && this.get(key) !== undefined).sort();
  }

  /** Writes as another client would. */
  put(key: string, value: string | Buffer): void {
    this.#revision += 1;
    this.#set(key, Buffer.from(value));
    this.#notifyAll();
  }

  remove(key: string): void {
    if (this.get(key) === undefined) return;
    this.#revision += 1;
    this.#set(key, undefined);
  }

  compact(revision = this.#revision): void {
    this.#compacted = Math.max(this.#compacted, revision);
    for (const [key, versions] of this.#keys) {
      const current = versions.findLast((version) => version.revision <= revision);
      const kept = versions.filter((version) => version === current || version.revision > revision);
      if (kept.length === 1 && kept[0]?.value === undefined) this.#keys.delete(key);
      else this.#keys.set(key, kept);
    }
  }

  /** A backup; `restore` restores it under running clients, the revision included. */
  save(): { readonly keys: ReadonlyMap<string, Version[]>; readonly revision: number } {
    return { keys: structuredClone(this.#keys), revision: this.#revision };
  }

  restore({ keys, revision }: ReturnType<SmallEtcd['save']>): void {
    this.#keys = new Map(Array.from(keys, ([key, versions]) => [key,
      versions.map((version) => ({ ...version, value: version.value && Buffer.from(version.value) }))]));
    this.#revision = revision;
    this.endWatches();
  }

  endWatches(): void {
    for (const { response } of this.#watchers) response.destroy();
    this.#watchers.clear();
  }

  endTokens(): void {
    this.#tokens.clear();
  }

  /** Ends the alarm, as an operator does after raising the quota. */
  disarm(): void {
    this.#alarm = false;
  }

  get bytes(): number {
    let bytes = 0;
    for (const versions of this.#keys.values()) for (const { value } of versions) bytes += value?.length ?? 0;
    return bytes;
  }

  async #serve(member: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    const send = (status: number, answer: Json): void => {
      // The gateway's white space varies.
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(answer, undefined, this.#revision % 2));
    };
    try {
      if (path === '/version') return send(200, { etcdserver: '3.5.99', etcdcluster: '3.5.0' });
      const body = (await json(request)) as Json;
      this.requests.push({ member, path, body });
      if (path === '/v3/watch') return this.#watch(member, body, response, request);
      const fault = this.onRequest({ member, path, body });
      if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
      if (fault === 'lose') return void response.destroy();
      if (typeof fault === 'object' && 'status' in fault) throw new Refusal(fault.status, fault.code, fault.message);
      if (typeof fault === 'object') {
        await new Promise((resolve) => setTimeout(resolve, fault.heldMs).unref());
        if (fault.then === 'refuse') throw new Refusal(503, 14, 'etcdserver: request timed out');
      }
      const answer = this.#answer(path, body, request);
      if (fault === 'apply-unanswered') return void response.destroy();
      send(200, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, code, message } = error;
      send(status, { error: message, code, message });
    }
  }

  #answer(path: string, body: Json, request: IncomingMessage): Json {
    if (path === '/v3/auth/authenticate') return this.#authenticate(body);
    this.#authorize(request);
    switch (path) {
      case '/v3/kv/txn':
        return this.#txn(body);
      case '/v3/kv/range':
        return { header: this.#header, ...this.#rangeAnswer(body) };
      case '/v3/kv/compaction':
        if (Number(body['revision']) > this.#revision) throw futureRevision();
        this.compact(Number(body['revision']));
        return { header: this.#header };
      default:
        throw new Refusal(404, 5, 'Not Found');
    }
  }

  get #header(): Json {
    return { cluster_id: this.#cluster, member_id: '1', revision: String(this.#revision), raft_term: '2' };
  }

  #authenticate({ name, password }: Json): Json {
    if (this.users.size === 0) throw new Refusal(400, 9, 'etcdserver: authentication is not enabled');
    if (this.users.get(String(name)) !== password) {
      throw new Refusal(400, 3, 'etcdserver: authentication failed, invalid user ID or password');
    }
    const token = `token.${this.#tokens.size}.${Date.now()}`;
    this.#tokens.set(token, Date.now() + this.tokenMs);
    return { header: this.#header, token };
  }

  #authorize({ headers: { authorization } }: IncomingMessage): void {
    if (this.users.size === 0) return;
    if (authorization === undefined) throw new Refusal(400, 3, 'etcdserver: user name is empty');
    const end = this.#tokens.get(authorization) ?? 0;
    if (end < Date.now()) throw new Refusal(401, 16, 'etcdserver: invalid auth token');
  }

  #txn(body: Json): Json {
    const [compare, success, failure] = [list(body['compare']), list(body['success']), list(body['failure'])];
    if ([compare, success, failure].some(({ length }) => length > 128)) {
      throw new Refusal(400, 3, 'etcdserver: too many operations in txn request');
    }
    const puts = [...success, ...failure].flatMap((operation) => operation['request_put'] ?? []) as Json[];
    const bytes = puts.reduce((sum, { value }) => sum + decode(value).length, 0);
    if (bytes > 1.5 * 1024 * 1024) throw new Refusal(400, 3, 'etcdserver: request is too large');
    for (const branch of [success, failure]) {
      const keys = branch.flatMap((operation) => (operation['request_put'] as Json | undefined)?.['key'] ?? []);
      if (new Set(keys).size < keys.length) throw new Refusal(400, 3, 'etcdserver: duplicate key given in txn request');
    }
    if (puts.length > 0) {
      if (this.bytes + bytes > this.quota) this.#alarm = true;
      if (this.#alarm) throw spaceExceeded;
    }
    const succeeded = compare.every((condition) => this.#holds(condition));
    const operations = succeeded ? success : failure;
    const before = this.#revision;
    const change = (key: string, value: Buffer | undefined): void => {
      this.#revision = before + 1;
      this.#set(key, value);
    };
    const responses = operations.map((operation) => {
      const { request_put, request_range, request_delete_range } = operation as { readonly [name: string]: Json };
      if (request_put !== undefined) {
        change(decode(request_put['key']).toString(), decode(request_put['value']));
        return { response_put: { header: { revision: String(this.#revision) } } };
      }
      if (request_delete_range !== undefined) {
        const found = this.#range(...boundsOf(request_delete_range), this.#revision);
        for (const [key] of found) change(key, undefined);
        return { response_delete_range: { ...(found.length > 0 && { deleted: String(found.length) }) } };
      }
      return { response_range: this.#rangeAnswer(request_range ?? {}) };
    });
    if (this.#revision > before) this.#notifyAll();
    return { header: this.#header, ...(succeeded && { succeeded }), ...(responses.length > 0 && { responses }) };
  }

  #holds({ key, target, result = 'EQUAL', ...operand }: Json): boolean {
    const found = this.#find(decode(key).toString(), this.#revision);
    if (result !== 'EQUAL') throw new Refusal(400, 3, 'the small etcd compares by EQUAL alone');
    switch (target) {
      case 'MOD':
        return (found?.revision ?? 0) === Number(operand['mod_revision'] ?? 0);
      case 'CREATE':
        return (found?.created ?? 0) === Number(operand['create_revision'] ?? 0);
      case 'VALUE':
        return found?.value !== undefined && found.value.equals(decode(operand['value']));
      default:
        throw new Refusal(400, 3, `the small etcd does not compare ${String(target)}`);
    }
  }

  #rangeAnswer(request: Json): Json {
    const at = Number(request['revision'] ?? 0) || this.#revision;
    if (at > this.#revision) throw futureRevision();
    if (at < this.#compacted) throw new Refusal(400, 11, 'etcdserver: mvcc: required revision has been compacted');
    const found = this.#range(...boundsOf(request), at);
    if (request['sort_order'] === 'DESCEND') found.reverse();
    const limit = Number(request['limit'] ?? 0) || found.length;
    const shown = request['count_only'] === true ? [] : found.slice(0, limit);
    const kvs = shown.map(([key, version]) => keyValue(key, version, request['keys_only'] === true));
    return {
      ...(kvs.length > 0 && { kvs }),
      ...(found.length > limit && { more: true }),
      ...(found.length > 0 && { count: String(found.length) }),
    };
  }

  /** The latest version of a key up to a revision, unless it was removed. */
  #find(key: string, revision: number): Version | undefined {
    const version = this.#keys.get(key)?.findLast((candidate) => candidate.revision <= revision);
    return version?.value === undefined ? undefined : version;
  }

  #range(from: string, end: string, revision: number): [string, Version][] {
    const keys = end === '' ? [from] : [...this.#keys.keys()].filter((key) => key >= from && key < end).sort();
    return keys.flatMap((key) => {
      const version = this.#find(key, revision);
      return version === undefined ? [] : [[key, version] satisfies [string, Version]];
    });
  }

  #set(key: string, value: Buffer | undefined): void {
    const { created = this.#revision, version = 0 } = this.#find(key, this.#revision) ?? {};
    const next = { revision: this.#revision, created, version: version + 1, value };
    this.#keys.set(key, [...(this.#keys.get(key) ?? []), next]);
  }

  #notifyAll(): void {
    for (const watcher of this.#watchers) this.#notify(watcher);
  }

  #watch(member: number, body: Json, response: ServerResponse, request: IncomingMessage): void {
    const { start_revision = 0, ...create } = body['create_request'] as Json;
    const [from, end] = boundsOf(create);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const line = (result: Json): void => void response.write(`${JSON.stringify({ result })}\n`);
    try {
      this.#authorize(request);
    } catch {
      const cancel_reason = 'rpc error: code = PermissionDenied desc = etcdserver: permission denied';
      return line({ header: this.#header, created: true, canceled: true, cancel_reason });
    }
    line({ header: this.#header, created: true });
    const next = Number(start_revision) || this.#revision + 1;
    if (next < this.#compacted) {
      return line({ header: this.#header, canceled: true, compact_revision: String(this.#compacted) });
    }
    const watcher = { from, end, next, response, member };
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
    this.#notify(watcher);
  }

  #notify(watcher: Watcher): void {
    const { from, end, next, response, member } = watcher;
    if (this.silent.has(member)) return;
    watcher.next = this.#revision + 1;
    if (this.losesEvents) return;
    const keys = end === '' ? [from] : [...this.#keys.keys()].filter((key) => key >= from && key < end);
    const events = keys
      .flatMap((key) => (this.#keys.get(key) ?? []).map((version) => ({ key, version })))
      .filter(({ version }) => version.revision >= next && version.value !== undefined)
      .sort((a, b) => a.version.revision - b.version.revision)
      .map(({ key, version }) => ({ kv: keyValue(key, version, false) }));
    if (events.length > 0) response.write(`${JSON.stringify({ result: { header: this.#header, events } })}\n`);
  }
}

function keyValue(key: string, { created, revision, version, value }: Version, keysOnly: boolean): Json {
  const content = keysOnly || value === undefined || value.length === 0 ? {} : { value: value.toString('base64') };
  return {
    key: Buffer.from(key).toString('base64'),
    create_revision: String(created),
    mod_revision: String(revision),
    version: String(version),
    ...content,
  };
}

function futureRevision(): Refusal {
  return new Refusal(400, 11, 'etcdserver: mvcc: required revision is a future revision');
}

function boundsOf({ key, range_end }: Json): [string, string] {
  return [decode(key).toString(), decode(range_end).toString()];
}

function decode(value: unknown): Buffer {
  return Buffer.from(typeof value === 'string' ? value : '', 'base64');
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value : [];
}
