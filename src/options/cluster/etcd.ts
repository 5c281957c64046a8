/**
 * A client of etcd's JSON gateway. It handles two cases; the others are in `shared-log.ts`:
 *
 *   case  what is found                       what is done
 *   ----  ----------------------------------  ------------------------------------------
 *   A7    too many requests                   the same again after a pause
 *   A8    the token has expired, or no        a new token, and the same again
 *         member answers it
 */
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';
import { CairnError, FatalError, readReason } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { timers } from '../../base/system.ts';
import type { ClusterOptions } from '../../config/options.ts';

/** The shared log cannot be used. The message says why, and what to do. */
export class ClusterError extends FatalError {
  override readonly name = 'ClusterError';
}

export interface EtcdOptions extends Pick<ClusterOptions, 'members' | 'tls' | 'user'> {
  readonly onNotice?: (notice: string) => void;
}

export interface KeyValue {
  readonly key: string;
  readonly value: Buffer;
  readonly revision: number;
}

export interface Txn {
  /** Conditions, made by `isAt` and `hasValue`. */
  readonly compare?: readonly JsonObject[];
  /** Runs if all conditions hold; otherwise `failure` does. */
  readonly success: readonly JsonObject[];
  readonly failure?: readonly JsonObject[];
}

export interface TxnAnswer {
  readonly succeeded: boolean;
  readonly revision: number;
  /** The keys that each operation found; empty for all except `range`. */
  readonly found: readonly (readonly KeyValue[])[];
}

/** A trusted JSON response. It omits members that are zero, false or empty. */
interface EncodedAnswer {
  header: { cluster_id: string; revision: string };
  succeeded?: boolean;
  responses?: { response_range?: { kvs?: EncodedKey[] } }[];
  token?: string;
  canceled?: boolean;
  events?: { kv: EncodedKey }[];
}

interface EncodedKey {
  key: string;
  value?: string;
  mod_revision: string;
}

/** Errors that say nothing about the health of a member. */
const passing = /too many requests|auth token|auth store is old/;
/** The silence after which the same request goes to the next member. */
const attemptMs = 1500;
const pauseMs = 100;
const watchSilenceMs = 5000;

/** Requires that this revision last wrote the key; 0 if it must be absent. */
export function isAt(key: string, revision: number): JsonObject {
  return { key: base64(key), target: 'MOD', result: 'EQUAL', mod_revision: String(revision) };
}

export function hasValue(key: string, value: string): JsonObject {
  return { key: base64(key), target: 'VALUE', result: 'EQUAL', value: base64(value) };
}

export function put(key: string, value: string | Buffer): JsonObject {
  return { request_put: { key: base64(key), value: base64(value) } };
}

/** Finds the keys from `key` up to, but excluding, `end`. */
export function range(key: string, end = '', more: JsonObject = {}): JsonObject {
  return { request_range: { ...keys(key, end), ...more } };
}

export function remove(key: string, end = ''): JsonObject {
  return { request_delete_range: keys(key, end) };
}

function keys(key: string, end = ''): JsonObject {
  return { key: base64(key), range_end: base64(end) };
}

/** The end of the keys below `prefix`, which ends in a slash. */
export function rangeEnd(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}

/** Sends each request to one member of etcd, and to the next one if that fails. */
export class Etcd {
  readonly #options: EtcdOptions;
  readonly #closing = new AbortController();
  problem = '';
  /** The remainder is the index of the current member. */
  #index: number;
  #token = '';
  #cluster = '';

  /** `first` selects the first member, so that clients use different ones. */
  constructor(options: EtcdOptions, first: number) {
    this.#options = options;
    this.#index = first;
  }

  get address(): string {
    const { members } = this.#options;
    return members[this.#index % members.length] ?? '';
  }

  /**
   * Runs one transaction. Sends it to one member after another until one responds, the client is
   * closed, or `patience` is over. So running it twice must do no harm.
   * @throws ClusterError for a definite refusal; CairnError `store_unavailable` if `patience` is
   *   over
   */
  async txn(txn: Txn, patience?: AbortSignal): Promise<TxnAnswer> {
    // An earlier attempt without a response may still succeed, so a refusal is not definite.
    let isCertain = true;
    const first = this.address;
    let problem = '';
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { succeeded = false, header, responses = [] } = await this.#ask('/v3/kv/txn', txn);
        if (header.cluster_id !== this.#cluster) {
          throw new Error(`${this.address} belongs to another cluster of etcd`);
        }
        if (problem !== '' && this.address !== first && !passing.test(problem)) {
          const advice = 'see "etcdctl endpoint health --cluster"';
          this.#options.onNotice?.(`${problem}; ${this.address} is asked now; ${advice}`);
        }
        const found = responses.map(({ response_range }) =>
          (response_range?.kvs ?? []).map(decoded),
        );
        return { succeeded, revision: Number(header.revision), found };
      } catch (error) {
        if (isCertain && error instanceof ClusterError) throw error;
        if (this.#closing.signal.aborted) throw error;
        const reason = readReason(error);
        this.problem = reason;
        problem ||= reason.startsWith(first) ? reason : `${first}: ${reason}`;
        if (patience?.aborted === true) {
          const message = `Cannot reach etcd: no member answers (${reason}); check --cluster, and that its members run`;
          throw new CairnError('store_unavailable', message);
        }
        isCertain = false;
        this.#index += 1;
        if (attempt % this.#options.members.length > 0) continue;
        // A restored etcd rejects its earlier tokens.
        this.#token = '';
        await timers.sleep(pauseMs);
      }
    }
  }

  /**
   * Asks each member once for `key`. Ignores members that do not respond.
   * @throws ClusterError if one refuses, or belongs to another etcd cluster
   */
  async survey(key: string): Promise<void> {
    for (const _ of this.#options.members) {
      const answer = await this.#ask('/v3/kv/range', keys(key)).catch(ignore);
      if (answer !== undefined && answer.header.cluster_id !== this.#cluster) {
        throw refusal(`${this.address} belongs to another cluster of etcd; correct --cluster`);
      }
      this.#index += 1;
    }
  }

  /**
   * Calls `onPut` with the keys put below `prefix` from `revision` on, until etcd or a silence ends
   * the watch. @throws Error
   */
  async watch(
    prefix: string,
    revision: number,
    onPut: (keys: readonly KeyValue[]) => void,
  ): Promise<void> {
    const from = { ...keys(prefix, rangeEnd(prefix)), start_revision: String(revision) };
    const create_request = { ...from, fragment: true, filters: ['NODELETE'] };
    const response = await this.#send('/v3/watch', await this.#authenticated(), { create_request });
    response.setEncoding('utf8').setTimeout(watchSilenceMs);
    let rest = '';
    for await (const chunk of response) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const { result }: { result?: EncodedAnswer } = JSON.parse(line);
        if (result === undefined || result.canceled === true) return;
        onPut((result.events ?? []).map(({ kv }) => decoded(kv)));
      }
    }
  }

  close(): void {
    this.#closing.abort();
  }

  /** Makes one attempt at one member. @throws ClusterError for a definite refusal; Error */
  async #ask(path: string, body: object, token?: string): Promise<EncodedAnswer> {
    const response = await this.#send(path, token ?? (await this.#authenticated()), body);
    const content = await text(response);
    const { statusCode = 0 } = response;
    if (statusCode === 200) {
      const answer: EncodedAnswer = JSON.parse(content);
      this.#cluster ||= answer.header.cluster_id;
      return answer;
    }
    const message = /"message":\s*"([^"]*)/.exec(content)?.[1] ?? content;
    const problem = `${this.address} answers ${statusCode}: ${message}`;
    if (statusCode < 500 && !passing.test(problem)) throw refusal(problem);
    this.#token = '';
    throw new Error(problem);
  }

  async #authenticated(): Promise<string> {
    const { user } = this.#options;
    const path = '/v3/auth/authenticate';
    if (user !== undefined) this.#token ||= (await this.#ask(path, user, '')).token ?? '';
    return this.#token;
  }

  #send(path: string, token: string, body: object): Promise<IncomingMessage> {
    const url = new URL(path, this.address);
    const options = {
      ...this.#options.tls,
      method: 'POST',
      timeout: attemptMs,
      signal: this.#closing.signal,
      headers: {
        'Content-Type': 'application/json',
        ...(token !== '' && { Authorization: token }),
      },
    };
    return new Promise((resolve, reject) => {
      const request = (url.protocol === 'https:' ? https : http).request(url, options, resolve);
      const end = () => request.destroy(new Error(`${url.origin} is silent`));
      request.on('error', reject).on('timeout', end);
      request.end(JSON.stringify(body));
    });
  }
}

function base64(value: string | Buffer): string {
  return Buffer.from(value).toString('base64');
}

function decoded({ key, value = '', mod_revision }: EncodedKey): KeyValue {
  return {
    key: Buffer.from(key, 'base64').toString(),
    value: Buffer.from(value, 'base64'),
    revision: Number(mod_revision),
  };
}

function ignore(error: unknown): undefined {
  if (error instanceof ClusterError) throw error;
}

/** Definite: nothing was written. */
function refusal(problem: string): ClusterError {
  return new ClusterError(78, `Cannot use etcd: ${problem}`);
}
