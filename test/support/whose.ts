import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { CairnError } from '../../src/base/errors.ts';
import type { CollectionDefinition } from '../../src/collections/declaration.ts';
import { declareCollection } from '../../src/collections/define.ts';
import type { Caller } from '../../src/programs/callers.ts';
import { type App, type PlainReply, createApp } from './inside.ts';
import { type Generator, createGenerator, generateFrom } from './basics.ts';

/** A model of access, written from the manual and independent of the source. Responses are compared with it. */

export type Operation = 'list' | 'create' | 'read' | 'replace' | 'patch' | 'remove';
export type Cells = Readonly<Record<Operation, readonly string[]>>;

/** A caller. A stranger has no user. */
export interface Asker {
  readonly userId?: number;
  readonly role?: string;
  readonly kind: 'anonymous' | 'bearer' | 'session' | 'key';
  readonly isReadOnly?: boolean;
}
export const stranger: Asker = { kind: 'anonymous' };

/** The caller as a route with this rule sees it: a public route ignores credentials. */
export const toAsker = (cell: readonly string[], who: Asker): Asker => (cell.includes('public') ? stranger : who);

export interface Row {
  readonly id: number;
  readonly ownerId: number;
  /** Counts the changes. */
  readonly version: number;
  readonly values: Readonly<Record<string, unknown>>;
}

/** The words that depend on the record: the owner, and fields that refer to users. */
export const isByRecord = (word: string): boolean => word === 'owner' || /Ids?$/.test(word);

/** True if a rule lets a caller pass for a record; without a record, for the best possible one. */
export function holds(cell: readonly string[], who: Asker, row?: Row): boolean {
  return cell.some((word) => {
    if (word === 'public' || word === 'optional') return true;
    if (who.userId === undefined || (word === 'session' && who.kind !== 'session')) return false;
    if (who.role === 'admin' || word === 'user' || word === 'session') return true;
    if (!isByRecord(word)) return word === who.role;
    const named = row === undefined ? who.userId : word === 'owner' ? row.ownerId : row.values[word];
    return [named].flat().includes(who.userId);
  });
}

/** True if a caller may set a field with this rule. Everyone signed in is the owner of a row that is being created. */
export const maySet = (words: readonly string[], who: Asker, row?: Row): boolean =>
  who.role === 'admin' || words.includes(String(who.role)) ||
  (words.includes('owner') && who.userId !== undefined && (row === undefined || row.ownerId === who.userId));

/** The words that ask for no role, and for nothing of a record. */
const isOpen = (word: string): boolean => ['public', 'optional', 'user', 'session'].includes(word);

/** The rules in effect: if only roles may read, only these roles are shown lists. */
export function toServed(cells: Cells): Cells {
  const { list, read } = cells;
  if (read.some((word) => isOpen(word) || isByRecord(word))) return cells;
  const both = list.filter((word) => isByRecord(word) || read.includes(word));
  return { ...cells, list: list.some(isOpen) ? read : both.length > 0 ? both : ['admin'] };
}

/** True if a caller who may reach the collection may read this record, or see it in a list. */
export const mayRead = ({ read }: Cells, who: Asker, row: Row): boolean =>
  !read.some(isByRecord) || holds(read, who, row);
export const isListed = (cells: Cells, who: Asker, row: Row): boolean =>
  holds(cells.list, who, row) &&
  (cells.read.some(isOpen) && !cells.read.some(isByRecord) || holds(cells.read, who, row));

/** The status of a refusal before a record is looked up; `undefined` where there is none. */
export function findRefusal(cells: Cells, operation: Operation, who: Asker): number | undefined {
  const needed = operation === 'replace' || operation === 'patch' ? [cells[operation], cells.read] : [cells[operation]];
  const refusing = needed.find((cell) => !holds(cell, who));
  if (refusing !== undefined) return who.userId === undefined ? 401 : 403;
  return who.isReadOnly && operation !== 'list' && operation !== 'read' ? 403 : undefined;
}

/** The status of a request for a record that may not be there; `undefined` where it is answered. */
export function findVerdict(cells: Cells, operation: Operation, who: Asker, row: Row | undefined): number | undefined {
  const refused = findRefusal(cells, operation, who);
  if (refused !== undefined) return refused;
  if (row === undefined || !holds(cells.read, who, row)) return 404;
  return holds(cells[operation], who, row) ? undefined : 403;
}

/** The kind of the event that a listener of the change feed gets for a change, if any. */
export function expectEvent(cells: Cells, who: Asker, before?: Row, after?: Row): string | undefined {
  const [saw, sees] = [before, after].map((row) => row !== undefined && isListed(cells, who, row));
  return sees ? (saw ? 'replaced' : 'created') : saw ? 'removed' : undefined;
}

/** The number of requests sent to one world. */
const questionsPerWorld = 300;

/** Sends `count` random requests, and fails at the first response that the model forbids. */
export async function sendRandomRequests(use: string, count: number): Promise<void> {
  const random = createGenerator(use);
  for (let asked = 0, number = 0; asked < count; number += 1) {
    const world = await openWorld(random);
    const questions = new Questions(world);
    try {
      const followers = questions.follow();
      await questions.begin();
      while (questions.asked < Math.min(questionsPerWorld, count - asked)) await questions.ask();
      await followers();
    } catch (error) {
      const cells = world.collections.map((each) => ({ [each.name]: each.cells, reference: each.reference }));
      console.log(`# world ${number}, question ${asked + questions.asked}: ${JSON.stringify(cells)}`);
      throw error;
    } finally {
      await world.app.close();
    }
    asked += questions.asked;
  }
}

interface Answer {
  readonly status: number;
  readonly json: ReturnType<typeof Object>;
  readonly reply: PlainReply;
  /** Requests and responses, for the message of a failure. */
  readonly told: string;
}

interface Sent {
  readonly json?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
}

type Filter = readonly [query: string, passes: (row: Row) => boolean];
type Values = Readonly<Record<string, unknown>>;

/** A user who does not own the record and whom the record does not name. */
const strange: Row = { id: 0, ownerId: -1, version: 0, values: {} };

const shownOf = ({ id, values }: Row): object => ({ id, ...values });
const markOf = ({ id, version }: Row): string => `${id}-${version}`;
/** Values as JSON shows them: without absent members. */
const plain = (values: Values): Values => JSON.parse(JSON.stringify(values));

/** True if access depends on the record. */
const isPersonal = ({ list, read }: Cells, who: Asker, of: 'list' | 'read'): boolean => {
  const cells = of === 'list' ? [list, read] : [read];
  return cells.some((cell) => cell.some(isByRecord) && !holds(cell, who, strange));
};

class Questions {
  asked = 0;
  readonly #world: World;
  /** Each question has its numbers, so that it can be asked again. */
  #random: Generator;
  readonly #salt: number;
  #questions = 0;
  #serial = 0;
  /** All changes: the collection, and the record before and after. */
  readonly #changes: [Modelled, Row | undefined, Row | undefined][] = [];
  /** The last entity tag that somebody got for a target, and what was shown with it. */
  readonly #tags = new Map<string, { tag: string; shown: string }>();
  /** The replies that are kept, by caller and key. */
  readonly #kept = new Map<string, { target: string; json: unknown; shown: unknown }>();
  /** The last request with an idempotency key. */
  readonly #repeatable = new Map<string, readonly [Modelled, Values]>();

  constructor(world: World) {
    this.#world = world;
    this.#random = world.random;
    this.#salt = world.random.below(2 ** 32);
  }

  /** Makes some records. */
  async begin(): Promise<void> {
    const { collections, someones } = this.#world;
    for (const of of collections)
      for (let tries = 0; tries < 30 && of.rows.size < 6; tries += 1)
        await this.#create(of, this.#random.pick(someones));
  }

  async ask(): Promise<void> {
    const { random, collections, someones } = this.#world;
    // Recent requests, to be repeated now that something may have changed.
    const isAgain = random.below(3) === 0;
    const number = isAgain ? Math.max(0, this.#questions - 1 - random.below(12)) : this.#questions++;
    this.#random = generateFrom(`${this.#salt} ${number}`);
    const [of, who] = [this.#random.pick(collections), this.#random.pick(someones)];
    const looks = [() => this.#read(of, who), () => this.#list(of, who), () => this.#list(of, who)];
    const writes = [
      () => this.#create(of, who), () => this.#create(of, who), () => this.#change(of, who),
      () => this.#change(of, who), () => this.#remove(of, who), () => this.#remove(of, who),
      () => this.#program(of, who),
    ];
    const isLook = this.#random.below(5) < 3;
    if (isAgain && !isLook) this.#random = random;
    await this.#random.pick(isLook ? looks : writes)();
  }

  async #send(who: Someone, method: string, target: string, { json, fields }: Sent = {}): Promise<Answer> {
    this.asked += 1;
    const typed = json === undefined ? {} : { 'content-type': 'application/json' };
    const body = json === undefined ? undefined : JSON.stringify(json);
    const sent = { ...who.fields, ...typed, ...fields };
    const reply = await this.#world.app.inject({ method, target, fields: sent, body, address: who.address });
    const parsed = reply.body === '' ? undefined : JSON.parse(reply.body);
    const told = `${who.name}: ${method} ${target} ${body ?? ''} → ${reply.status} ${reply.body}`;
    if (reply.status >= 400) assert.doesNotMatch(`${reply.body} ${reply.fields.raw.join(' ')}`, /secret-/, told);
    return { status: reply.status, json: Object(parsed), reply, told };
  }

  /** The id of a record, or sometimes of none. */
  #someId(of: Modelled): number {
    const { pick, below } = this.#random;
    return of.rows.size === 0 || below(6) === 0 ? 1 + below(40) : pick([...of.rows.keys()].slice(0, 12));
  }

  #of(name: string): Modelled {
    const found = this.#world.collections.find((each) => each.name === name);
    assert.ok(found, name);
    return found;
  }

  /** The values of `embed` for a collection: its reference, and the collections that refer to it. */
  #embeddables(of: Modelled): { name: string; other: Modelled; kind: 'one' | 'list' | 'referring' }[] {
    const { reference } = of;
    const own = reference && {
      name: reference.field, other: this.#of(reference.to), kind: reference.isList ? 'list' as const : 'one' as const,
    };
    const others = this.#world.collections.filter((each) => each.reference?.to === of.name);
    return [...(own ? [own] : []), ...others.map((other) => ({ name: other.name, other, kind: 'referring' as const }))];
  }

  /** A record as a caller sees it with its embedded records, and the versions of all of these. */
  #embedded(of: Modelled, row: Row, embed: string, who: Asker): { shown: object; marks: string } {
    const found = this.#embeddables(of).find(({ name }) => name === embed);
    if (found === undefined) return { shown: shownOf(row), marks: markOf(row) };
    const { other, kind } = found;
    const rows = kind === 'referring'
      ? [...other.rows.values()].filter((each) =>
        [each.values[other.reference?.field ?? '']].flat().includes(row.id) && isListed(other.cells, who, each))
      : [row.values[embed] ?? []].flat().flatMap((id) => other.rows.get(Number(id)) ?? [])
        .filter((each) => mayRead(other.cells, who, each));
    const member = kind === 'referring' ? embed : (of.reference?.member ?? '');
    const isAbsent = kind !== 'referring' && row.values[embed] === undefined;
    const value = kind === 'one' ? rows.map(shownOf)[0] : rows.map(shownOf);
    const shown = isAbsent || value === undefined ? {} : { [member]: value };
    return { shown: { ...shownOf(row), ...shown }, marks: [row, ...rows].map(markOf).join() };
  }

  /** The name of what is embedded, whether somebody may, and whether records decide on it. */
  #someEmbedding(of: Modelled, who: Asker): { embed: string; isRefused: boolean; isPersonal: boolean; isAny: boolean } {
    const choices = this.#embeddables(of);
    if (this.#random.below(3) > 0 || choices.length === 0)
      return { embed: '', isRefused: false, isPersonal: false, isAny: false };
    const { name, other: { cells }, kind } = this.#random.pick(choices);
    const need = kind === 'referring' ? 'list' : 'read';
    return {
      embed: name, isAny: true, isRefused: !holds(cells[need], who), isPersonal: isPersonal(cells, who, need),
    };
  }

  /** Holds a tag against the one before: the same for what looks the same, wherever a tag would tell of more. */
  #checkTag(key: string, answer: Answer, shown: string, mustBeSame: boolean): void {
    const { told } = answer;
    const tag = answer.reply.fields.get('etag');
    if (tag === undefined) return;
    const before = this.#tags.get(key);
    if (before !== undefined && before.shown !== shown) assert.notEqual(tag, before.tag, told);
    if (before?.shown === shown && mustBeSame) assert.equal(tag, before.tag, told);
    this.#tags.set(key, { tag, shown });
  }

  async #read(of: Modelled, someone: Someone): Promise<void> {
    const { cells, name } = of;
    const who = toAsker(cells.read, someone);
    const id = this.#someId(of);
    const row = of.rows.get(id);
    const { embed, isRefused, isPersonal: isOthers, isAny } = this.#someEmbedding(of, who);
    const target = `/${name}/${id}${embed && `?embed=${embed}`}`;
    const key = `${someone.name} ${target}`;
    const known = this.#random.below(2) === 0 ? this.#tags.get(key) : undefined;
    const tag = known?.tag ?? (this.#random.below(2) === 0 ? '*' : undefined);
    const fields = tag === undefined ? {} : { 'if-none-match': tag };
    const answer = await this.#send(someone, 'GET', target, { fields });
    const { told } = answer;
    const refused = findVerdict(cells, 'read', who, row) ?? (isRefused ? 403 : undefined);
    if (refused !== undefined || row === undefined) return assert.equal(answer.status, refused, told);
    const { shown, marks } = this.#embedded(of, row, embed, who);
    if (answer.status === 304) {
      return assert.ok(tag === '*' || known?.shown === marks, told);
    }
    assert.equal(answer.status, 200, told);
    assert.ok(tag !== '*' && (known?.shown !== marks || (isAny && !isOthers)), told);
    assert.deepEqual(answer.json, shown, told);
    this.#checkTag(key, answer, marks, !isAny || isOthers);
  }

  /** A filter by chance, and the records that pass it. */
  #someFilter(of: Modelled, who: Asker): Filter {
    const { pick, below } = this.#random;
    const ids = [this.#someId(of), this.#someId(of), this.#someId(of)];
    const rank = below(6);
    const { field = 'rank' } = of.reference ?? {};
    const [referred = 1] = ids;
    const among = (value: unknown): boolean => [value].flat().includes(referred);
    const text = `-${below(10)}`;
    const own: Filter = ['owner=me', ({ ownerId }) => ownerId === who.userId];
    const filters: readonly Filter[] = [
      ['', () => true], ['', () => true], [`rank:gte=${rank}`, ({ values }) => Number(values['rank']) >= rank],
      [`id=${ids.join('&id=')}`, ({ id }) => ids.includes(id)], [`id:in=${ids.join()}`, ({ id }) => ids.includes(id)],
      [`q=${text}`, ({ values }) => String(values['title']).includes(text)],
      ['q=secret', () => true], [`code=c${rank}`, ({ values }) => values['code'] === `c${rank}`],
      [`${field}${of.reference?.isList ? ':has' : ''}=${referred}`, ({ values }) => among(values[field])],
      [`or=(rank:eq:${rank},id:eq:${referred})`, ({ id, values }) => id === referred || values['rank'] === rank],
      ...(of.cells.list.includes('public') || who.userId === undefined ? [] : [own]),
    ];
    return pick(filters);
  }

  /** The whole of a list, in any way: at once, page by page from either end, or by number. */
  async #list(of: Modelled, someone: Someone): Promise<void> {
    const { cells, name } = of;
    const who = toAsker(cells.list, someone);
    const { embed, isRefused, isPersonal: isOthers } = this.#someEmbedding(of, who);
    const [filter, passes] = this.#someFilter(of, who);
    const [sort, compare] = this.#random.pick(orders);
    const rows = [...of.rows.values()].filter((row) => passes(row) && isListed(cells, who, row)).sort(compare);
    const limit = this.#random.pick([1, 2, 3, 5, 50]);
    const way = this.#random.pick(['whole', 'after', 'offset'] as const);
    const offset = this.#random.below(4);
    const places = { whole: '', after: `limit=${limit}`, offset: `limit=${limit}&offset=${offset}` };
    const place = places[way];
    const query = [filter, sort, embed && `embed=${embed}`, place].filter((each) => each !== '').join('&');
    const withTotal = this.#random.below(2) === 0;
    const fields = withTotal ? { prefer: 'count=exact' } : {};
    const refused = findRefusal(cells, 'list', who) ?? (isRefused ? 403 : undefined);
    const dependsOnCaller = isPersonal(cells, who, 'list') || isOthers || filter === 'owner=me';
    const expected = rows.slice(way === 'offset' ? offset : 0);
    let target: string | undefined = `/${name}${query && `?${query}`}`;
    for (let done = 0; target !== undefined; done += limit) {
      const answer = await this.#send(someone, 'GET', target, { fields });
      const { told } = answer;
      if (refused !== undefined) return assert.equal(answer.status, refused, told);
      assert.equal(answer.status, 200, told);
      const page = way === 'whole' ? expected : expected.slice(done, done + limit);
      const shown = page.map((row) => this.#embedded(of, row, embed, who));
      assert.deepEqual(answer.reply.body === '' ? [] : Array.from(answer.json), shown.map((each) => each.shown), told);
      const total = answer.reply.fields.get('x-total-count');
      assert.equal(total, withTotal || way === 'offset' ? String(rows.length) : undefined, told);
      const marks = shown.map((each) => each.marks).join(';');
      const isMore = way !== 'whole' && done + limit < expected.length;
      const links = answer.reply.fields.get('link') ?? '';
      const next: string | undefined = /<([^>]*)>; rel="next"/.exec(links)?.[1];
      if (way !== 'offset') assert.equal(next !== undefined, isMore, told);
      const last = page.at(-1);
      if (isMore && way !== 'offset' && last !== undefined) checkCursor(next ?? '', sort, last);
      if (dependsOnCaller) assert.equal(answer.reply.fields.get('etag'), undefined, told);
      else this.#checkTag(`${someone.name} ${target} ${withTotal}`, answer, `${marks} ${total} ${next}`, false);
      target = isMore && way !== 'offset' ? next : undefined;
    }
  }

  /** The id of a user, or sometimes of none. */
  #someUserId(): number {
    const { below } = this.#random;
    return below(40) === 0 ? usersCount + 1 : 1 + below(usersCount);
  }

  #someValues(of: Modelled): Values {
    const { below } = this.#random;
    this.#serial += 1;
    const { reference } = of;
    const some = reference && this.#of(reference.to);
    const ids = some === undefined ? [] : [...new Set([this.#someId(some), this.#someId(some)])];
    const referring = reference && (reference.isList ? ids : below(4) > 0 ? ids[0] : undefined);
    const code = below(6) === 0 ? `c${below(8)}` : undefined;
    const price = below(2) === 0 ? undefined : below(3);
    return plain({
      title: `secret-${of.name}-${this.#serial}`, rank: below(6), code, price,
      ...(reference && { [reference.field]: referring }),
      assigneeId: below(2) === 0 ? undefined : this.#someUserId(),
      memberIds: below(2) === 0 ? [] : [...new Set([this.#someUserId(), this.#someUserId()])],
    });
  }

  /** The status for invalid values, whoever writes them: a bad reference, or a value that is not unique. */
  #refusalOf(of: Modelled, who: Asker, values: Values, before?: Row): Refusal | undefined {
    const { reference } = of;
    const to = reference && this.#of(reference.to);
    const isThere = (id: unknown): boolean => {
      const row = to?.rows.get(Number(id));
      return row !== undefined && to !== undefined && holds(to.cells.read, who) && mayRead(to.cells, who, row);
    };
    const isUser = (id: unknown): boolean => Number(id) <= usersCount;
    const own = reference ? [[reference.field, isThere] as const] : [];
    const checks = [...own, ...people.map((name) => [name, isUser] as const)];
    const pointers = checks.flatMap(([name, isFine]) => {
      const value = values[name];
      const former = [before?.values[name]].flat();
      return [value ?? []].flat().flatMap((id, index) =>
        isFine(id) || former.includes(id) ? [] : [`/${name}${Array.isArray(value) ? `/${index}` : ''}`]);
    });
    if (pointers.length > 0) return { status: 422, pointers };
    const { code } = values;
    const others = [...of.rows.values()].filter((row) => row !== before);
    const isTaken = code !== undefined && others.some((row) => row.values['code'] === code);
    return isTaken ? { status: 409, pointers: ['/code'] } : undefined;
  }

  #put(of: Modelled, row: Row, before?: Row): void {
    of.rows.set(row.id, row);
    this.#changes.push([of, before, row]);
  }

  #checkRefused(answer: Answer, { status, pointers }: Refusal): void {
    const { told } = answer;
    assert.equal(answer.status, status, told);
    const issues: { pointer: string }[] = answer.json.errors ?? [];
    assert.deepEqual(issues.map(({ pointer }) => pointer.replace(/^\/0(?=\/)/, '')), pointers, told);
  }

  async #create(of: Modelled, someone: Someone): Promise<void> {
    const who = toAsker(of.cells.create, someone);
    const isBatch = this.#random.below(4) === 0;
    const keyed = this.#random.below(3) > 0 ? undefined : `k${this.#random.below(4)}`;
    const [former, values] = (keyed !== undefined && this.#random.below(2) === 0 && this.#repeatable.get(keyed)) ||
      [of, this.#someValues(of)];
    if (former !== of) return this.#create(former, someone);
    if (keyed !== undefined) this.#repeatable.set(keyed, [of, values]);
    const target = `/${of.name}${isBatch ? '/batch' : ''}`;
    const fields = keyed === undefined ? {} : { 'idempotency-key': keyed };
    const answer = await this.#send(someone, 'POST', target, { json: isBatch ? [values] : values, fields });
    const { told } = answer;
    const refused = findRefusal(of.cells, 'create', who);
    if (refused !== undefined) return assert.equal(answer.status, refused, told);
    if ('price' in values && !maySet(of.setters, who))
      return this.#checkRefused(answer, { status: 422, pointers: ['/price'] });
    const isReplayed = answer.reply.fields.get('idempotency-replayed') === 'true';
    const caller = `${who.userId ?? someone.address} ${keyed}`;
    const kept = keyed === undefined ? undefined : this.#kept.get(caller);
    const isSame = kept !== undefined && kept.target === target && isDeepStrictEqual(kept.json, values);
    assert.equal(isReplayed, isSame, told);
    if (isReplayed) return assert.deepEqual(answer.json, kept?.shown, told);
    if (kept !== undefined) return assert.equal(answer.status, 422, told);
    const problem = this.#refusalOf(of, who, plain(values));
    if (problem !== undefined) return this.#checkRefused(answer, problem);
    assert.equal(answer.status, 201, told);
    const { id, ...shown } = isBatch ? answer.json[0] : answer.json;
    assert.deepEqual(shown, values, told);
    assert.ok(!of.rows.has(id), told);
    if (keyed !== undefined) this.#kept.set(caller, { target, json: values, shown: answer.json });
    this.#put(of, { id, ownerId: who.userId ?? 0, version: 1, values: plain(shown) });
  }

  async #change(of: Modelled, someone: Someone): Promise<void> {
    const operation: Operation = this.#random.pick(['patch', 'replace']);
    const who = toAsker(of.cells[operation], someone);
    const id = this.#someId(of);
    const before = of.rows.get(id);
    const whole = this.#someValues(of);
    const { title, ...others } = whole;
    const patch = this.#random.pick<Values>([others, whole, {}, { rank: whole['rank'] }]);
    const sent = operation === 'patch' ? patch : whole;
    const isStale = this.#random.below(6) === 0;
    const fields = isStale ? { 'if-match': '"of-no-version"' } : {};
    const method = operation === 'patch' ? 'PATCH' : 'PUT';
    const answer = await this.#send(someone, method, `/${of.name}/${id}`, { json: sent, fields });
    const { told } = answer;
    const refused = findVerdict(of.cells, operation, who, before) ?? (isStale ? 412 : undefined);
    if (refused !== undefined || before === undefined) return assert.equal(answer.status, refused, told);
    const { price } = before.values;
    const mayPrice = maySet(of.setters, who, before);
    if (!mayPrice && 'price' in sent && sent['price'] !== price)
      return this.#checkRefused(answer, { status: 422, pointers: ['/price'] });
    const kept = mayPrice || price === undefined ? {} : { price };
    const values = operation === 'patch' ? { ...before.values, ...sent } : { ...sent, ...kept };
    const isSame = isDeepStrictEqual(values, before.values);
    const problem = isSame ? undefined : this.#refusalOf(of, who, values, before);
    if (problem !== undefined) return this.#checkRefused(answer, problem);
    assert.equal(answer.status, 200, told);
    assert.deepEqual(answer.json, { id, ...values }, told);
    if (!isSame) this.#put(of, { ...before, version: before.version + 1, values }, before);
  }

  async #remove(of: Modelled, someone: Someone): Promise<void> {
    const who = toAsker(of.cells.remove, someone);
    const id = this.#someId(of);
    const row = of.rows.get(id);
    const isStale = this.#random.below(6) === 0;
    const fields = isStale ? { 'if-match': '"of-no-version"' } : {};
    const answer = await this.#send(someone, 'DELETE', `/${of.name}/${id}`, { fields });
    const { told } = answer;
    const refused = findVerdict(of.cells, 'remove', who, row) ?? (isStale ? 412 : undefined);
    if (refused !== undefined || row === undefined) return assert.equal(answer.status, refused, told);
    const removal = this.#removalOf(of, row);
    const [first] = removal.refusing;
    if (first === undefined) {
      assert.equal(answer.status, 204, told);
      return this.#apply(removal);
    }
    assert.equal(answer.status, 409, told);
    const [from] = first;
    const isKnown = holds(from.cells.list, who) &&
      removal.refusing.every(([, each]) => isListed(from.cells, who, each));
    const count = removal.refusing.length;
    const counted = isKnown ? `${count} record${count === 1 ? ' refers' : 's refer'}` : 'records refer';
    assert.equal(answer.json.detail, `Cannot remove the record: ${counted} to it in ${from.name}`, told);
  }

  /** The records that a removal takes along or changes, and those that prevent it. */
  #removalOf(of: Modelled, row: Row): Removal {
    const removed: [Modelled, Row][] = [[of, row]];
    const cleared = new Map<Row, readonly [Modelled, number[]]>();
    const refusing: [Modelled, Row][] = [];
    for (const [to, gone] of removed) {
      for (const from of this.#world.collections.filter(({ reference }) => reference?.to === to.name)) {
        const { field = '', onDelete } = from.reference ?? {};
        for (const each of from.rows.values()) {
          if (![each.values[field]].flat().includes(gone.id)) continue;
          if (onDelete === 'remove') removed.push([from, each]);
          else if (onDelete === 'clear') cleared.set(each, [from, [...(cleared.get(each)?.[1] ?? []), gone.id]]);
          else if (!refusing.some(([, known]) => known === each)) refusing.push([from, each]);
        }
      }
    }
    return { removed, cleared, refusing };
  }

  #apply({ removed, cleared }: Removal): void {
    for (const [row, [from, ids]] of cleared) {
      const { field = '' } = from.reference ?? {};
      const value = row.values[field];
      const rest = Array.isArray(value) ? value.filter((each) => !ids.includes(each)) : undefined;
      this.#put(from, { ...row, version: row.version + 1, values: plain({ ...row.values, [field]: rest }) }, row);
    }
    for (const [from, row] of removed) {
      from.rows.delete(row.id);
      this.#changes.push([from, row, undefined]);
    }
  }

  /** The same of a program that acts for somebody. */
  async #program(of: Modelled, who: Someone): Promise<void> {
    this.asked += 1;
    const { app } = this.#world;
    const { as } = who;
    const program = app.collection(of.name);
    const id = this.#someId(of);
    const row = of.rows.get(id);
    const told = `${who.name}: a program with ${of.name} ${id}`;
    const listed = [...of.rows.values()].filter((each) => isListed(of.cells, who, each));
    switch (this.#random.pick(['get', 'list', 'count', 'write', 'change', 'remove'] as const)) {
      case 'get': {
        const got = await orStatus(async () => program.get(id, { as }) ?? 404);
        return assert.deepEqual(got, findVerdict(of.cells, 'read', who, row) ?? (row && shownOf(row)), told);
      }
      case 'list': {
        const got = await orStatus(() => program.list({ as, sort: '-rank', total: true, limit: 3 }));
        const [, compare = () => 0] = orders.find(([sort]) => sort === 'sort=-rank') ?? [];
        const records = [...listed].sort(compare).slice(0, 3).map(shownOf);
        const refused = findRefusal(of.cells, 'list', who);
        if (refused !== undefined) return assert.equal(got, refused, told);
        return assert.deepEqual([Object(got).records, Object(got).total], [records, listed.length], told);
      }
      case 'count': {
        const got = await orStatus(async () => program.count({ as }));
        return assert.equal(got, findRefusal(of.cells, 'list', who) ?? listed.length, told);
      }
      case 'write': {
        const got = await orStatus(() => app.write((tx) => tx.collection(of.name).get(id) ?? 404, { as }));
        return assert.deepEqual(got, findVerdict(of.cells, 'read', who, row) ?? (row && shownOf(row)), told);
      }
      case 'change': {
        const got = await orStatus(() => program.change(id, {}, { as }));
        return assert.deepEqual(got, findVerdict(of.cells, 'patch', who, row) ?? (row && shownOf(row)), told);
      }
      case 'remove': {
        const got = await orStatus(() => program.remove(id, { as }));
        const refused = findVerdict(of.cells, 'remove', who, row);
        if (refused !== undefined || row === undefined) return assert.equal(got, refused, told);
        const removal = this.#removalOf(of, row);
        const isRefused = removal.refusing.length > 0;
        assert.equal(got, isRefused ? 409 : undefined, told);
        if (!isRefused) this.#apply(removal);
      }
    }
  }

  /** Follows the changes as some callers. The returned function holds what they were told against the model. */
  follow(): () => Promise<void> {
    const { app, someones, random } = this.#world;
    const users = someones.filter(({ userId }) => userId !== undefined);
    const chosen = [...new Set(Array.from({ length: 5 }, () => random.pick(users)))];
    const begin = (who: Someone, since?: string): Stream => {
      const controller = new AbortController();
      const stream = { text: '', ended: '', stop: () => controller.abort() };
      const target = `/changes${since === undefined ? '' : `?since=${since}`}`;
      const { fields, address } = who;
      const onPiece = (piece: string): void => void (stream.text += piece);
      const reply = app.inject({ target, fields, address, signal: controller.signal, onPiece });
      const end = (how: unknown): void => void (stream.ended = String(how));
      void reply.then(({ status, body }) => end(`${status} ${body}`), end);
      return stream;
    };
    const streams = chosen.map((who) => [who, begin(who)] as const);
    return async () => {
      await app.collection('ends').create({ title: 'the end' });
      for (const [who, stream] of streams) {
        this.#checkTold(who, await wholeOf(stream), 'as it happened');
        stream.stop();
        const again = begin(who, /id: (.*)/.exec(stream.text)?.[1]);
        this.#checkTold(who, await wholeOf(again), 'afterwards');
        again.stop();
      }
    };
  }

  #checkTold(who: Someone, text: string, when: string): void {
    const expected = this.#changes.flatMap(([{ name, cells }, before, after]) => {
      const kind = expectEvent(cells, who, before, after);
      if (kind === undefined || !holds(cells.list, who)) return [];
      const { id = 0 } = after ?? before ?? {};
      const record = kind === 'removed' || after === undefined ? {} : { record: shownOf(after) };
      return [`${kind} ${JSON.stringify({ collection: name, id, ...record })}`];
    });
    const events = [...text.matchAll(/event: (\w+)\ndata: (.*)\n/g)]
      .map(([, kind, data = '{}']) => `${kind} ${data}`).filter((event) => !/"(users|ends)"/.test(event));
    assert.deepEqual(events.map(sortedText).sort(), expected.map(sortedText).sort(), `${who.name} is told ${when}`);
  }
}

interface Refusal {
  readonly status: number;
  /** Where the issues are. */
  readonly pointers: readonly string[];
}

interface Removal {
  readonly removed: readonly (readonly [Modelled, Row])[];
  readonly cleared: ReadonlyMap<Row, readonly [Modelled, readonly number[]]>;
  readonly refusing: readonly (readonly [Modelled, Row])[];
}

/** An event with the members of its record in one order. */
const sortedText = (event: string): string => event.replace(/\{.*\}/, (json) =>
  JSON.stringify(JSON.parse(json), (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value));

interface Stream {
  readonly text: string;
  readonly ended: string;
  readonly stop: () => void;
}

async function wholeOf(stream: Stream): Promise<string> {
  while (!stream.text.includes('"the end"')) {
    assert.equal(stream.ended, '', 'the stream goes on');
    await new Promise(setImmediate);
  }
  return stream.text;
}

const byId = (a: Row, b: Row): number => a.id - b.id;
const byRank = (a: Row, b: Row): number => Number(a.values['rank']) - Number(b.values['rank']);
const orders: readonly [sort: string, compare: (a: Row, b: Row) => number][] = [
  ['', byId], ['sort=-id', (a, b) => byId(b, a)], ['sort=rank', (a, b) => byRank(a, b) || byId(a, b)],
  ['sort=-rank', (a, b) => byRank(b, a) || byId(a, b)], ['sort=rank,-id', (a, b) => byRank(a, b) || byId(b, a)],
];

/** A cursor names the place of a record that is shown. */
function checkCursor(link: string, sort: string, { id, values }: Row): void {
  const [, cursor = ''] = /cursor=([\w-]+)/.exec(link) ?? [];
  const { after } = JSON.parse(String(Buffer.from(cursor, 'base64url')));
  assert.deepEqual(after, sort.includes('rank') ? [values['rank'], id] : [id], link);
}

/** Declarations, callers and records by chance, and what they are in the model. */

const secret = 'the secret that signs in the tests of who reads what';
const password = 'a password for everybody';
const ownRoles = ['editor', 'viewer'];
/** The role of a user from before: no declaration names it. */
const formerRole = 'former';

/** A caller with the fields that requests of it have, and as programs have it. */
export interface Someone extends Asker {
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly address: string;
  readonly as: Caller;
}

/** A collection in the model. */
export interface Modelled {
  readonly name: string;
  readonly declared: Cells;
  /** The rules in effect. */
  readonly cells: Cells;
  /** The field that refers, if there is one. */
  readonly reference: Reference | undefined;
  /** The rule for setting the price. */
  readonly setters: readonly string[];
  readonly rows: Map<number, Row>;
}
export interface Reference {
  readonly field: string;
  readonly to: string;
  /** The member that embeds it. */
  readonly member: string;
  readonly isList: boolean;
  readonly onDelete: 'refuse' | 'remove' | 'clear';
}

const shared = {
  title: { kind: 'text', min: 1 }, rank: { kind: 'integer', default: 0 },
  code: { kind: 'text', unique: true, optional: true },
} as const;

/** The number of users; their ids start at 1. */
export const usersCount = 6;

const callerWords = ['optional', 'user', 'session', 'admin', 'member', ...ownRoles];
/** The fields that refer to users. */
export const people = ['assigneeId', 'memberIds'] as const;
const recordWords = ['owner', 'owner', ...people];
export const toUsers = { kind: 'reference', to: 'users', onDelete: 'clear' } as const;

function wordsBy(random: Generator, all: readonly string[]): string[] {
  const count = random.pick([1, 1, 2, 3]);
  return [...new Set(Array.from({ length: count }, () => random.pick(all)))];
}

/** The cells of a collection: each word with any others, as far as declarations take them. */
function cellsBy(random: Generator): Cells {
  const all = [...callerWords, ...recordWords, ...recordWords];
  const read = random.below(10) === 0 ? ['public'] : wordsBy(random, all);
  const open = !read.some(isByRecord);
  const cellOf = (operation: Operation): readonly string[] => {
    if ((open || operation === 'create') && random.below(10) === 0) return ['public'];
    if (operation === 'create') return random.below(4) > 0 ? ['user'] : wordsBy(random, callerWords);
    return operation !== 'list' && random.below(3) === 0 ? ['user'] : wordsBy(random, all);
  };
  const [list, create, replace, patch, remove] = [
    cellOf('list'), cellOf('create'), cellOf('replace'), cellOf('patch'), cellOf('remove'),
  ];
  return { list, create, read, replace, patch, remove };
}

/** Boards, the tasks of a board, and notes about several tasks. */
function collectionsBy(random: Generator): Modelled[] {
  const oneOf = (...choices: readonly Reference['onDelete'][]) => random.pick(choices);
  const references: readonly (readonly [string, Reference | undefined])[] = [
    ['boards', undefined],
    ['tasks', {
      field: 'boardId', to: 'boards', member: 'board', isList: false,
      onDelete: oneOf('refuse', 'refuse', 'remove', 'clear'),
    }],
    ['notes', {
      field: 'taskIds', to: 'tasks', member: 'tasks', isList: true, onDelete: oneOf('refuse', 'refuse', 'clear'),
    }],
  ];
  return references.map(([name, reference]) => {
    const declared = cellsBy(random);
    const setters = wordsBy(random, ['admin', 'member', 'owner', 'owner', ...ownRoles]);
    return { name, reference, declared, cells: toServed(declared), setters, rows: new Map() };
  });
}

function definitionOf({ name, declared, reference, setters }: Modelled): CollectionDefinition {
  const { field = '', to = '', onDelete = 'refuse', isList = false } = reference ?? {};
  const referring = { kind: 'reference', to, onDelete } as const;
  const own = isList
    ? { kind: 'list', of: referring, default: [] } as const
    : { ...referring, optional: true } as const;
  const fields = {
    ...shared, price: { kind: 'integer', optional: true, set: setters }, ...(reference && { [field]: own }),
    assigneeId: { ...toUsers, optional: true }, memberIds: { kind: 'list', of: toUsers, default: [] },
  } as const;
  return { name, fields, access: declared };
}

function sign(claims: object): string {
  const [header, payload] = [{ alg: 'HS256', typ: 'JWT' }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'));
  return `${header}.${payload}.${createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url')}`;
}

/** A user in each role, two of them members, each with a token, a session, a key and a key that only reads. */
async function someonesOf(app: App): Promise<Someone[]> {
  const as = await app.authenticate(new Request('http://localhost/'));
  const all: Someone[] = [{ ...stranger, name: 'stranger', fields: {}, address: '192.0.2.1', as }];
  for (const [index, role] of ['admin', 'member', 'member', ...ownRoles, formerRole].entries()) {
    const email = `user${index}@example.org`;
    const address = `198.51.100.${index}`;
    const given = role === formerRole ? 'member' : role;
    const user = await app.program.users.create({ name: `User ${index}`, email, password, role: given });
    const stored = app.users.records.get(user.id);
    if (given !== role && stored !== undefined)
      await app.store.write((tx) => tx.of(app.users.records).replace(user.id, { ...stored, role }));
    const post = async (target: string, json: object, fields: object = {}) => {
      const sent = { 'content-type': 'application/json', ...fields };
      const reply = await app.inject({ method: 'POST', target, fields: sent, body: JSON.stringify(json), address });
      assert.ok(reply.status < 300, reply.body);
      return reply;
    };
    const iat = Math.floor(Date.now() / 1000);
    const authorization = `Bearer ${sign({ userId: user.id, role, iat, exp: iat + 900 })}`;
    const keyOf = async (readOnly: boolean): Promise<string> => {
      const made = await post('/keys', { name: 'A key', readOnly, currentPassword: password }, { authorization });
      return `Bearer ${JSON.parse(made.body).key}`;
    };
    const cookie = /^sid=[\w-]*/.exec((await post('/login', { email, password })).fields.get('set-cookie') ?? '')?.[0];
    const forms: readonly [Asker['kind'], Record<string, string>, boolean?][] = [
      ['bearer', { authorization }], ['session', { cookie: cookie ?? '', 'sec-fetch-site': 'same-origin' }],
      ['key', { authorization: await keyOf(false) }], ['key', { authorization: await keyOf(true) }, true],
    ];
    for (const [kind, fields, isReadOnly = false] of forms) {
      const as = await app.authenticate(new Request('http://localhost/', { headers: fields }));
      const name = `${role} ${user.id} by ${kind}${isReadOnly ? ' to read' : ''}`;
      all.push({ name, userId: user.id, role, kind, isReadOnly, fields, address, as });
    }
  }
  return all;
}

/** An app with these collections and a caller of each kind. */
export async function openWith(definitions: readonly CollectionDefinition[], items = false) {
  const collections = definitions.map((each) => declareCollection(each));
  const app = await createApp({ collections, roles: ownRoles, secret, scryptCost: 1, items });
  return { app, someones: await someonesOf(app) };
}

/** Returns the result of `work`, or the status of its error. */
export async function orStatus<T>(work: () => T | Promise<T>): Promise<T | number> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CairnError) return error.status;
    throw error;
  }
}

export interface World {
  readonly app: App;
  readonly random: Generator;
  readonly collections: readonly Modelled[];
  readonly someones: readonly Someone[];
}

export async function openWorld(random: Generator): Promise<World> {
  const collections = collectionsBy(random);
  const ends: CollectionDefinition = { name: 'ends', fields: { title: { kind: 'text' } } };
  return { ...(await openWith([...collections.map(definitionOf), ends])), random, collections };
}
