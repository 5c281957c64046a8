import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { PlainReply } from '../inside.ts';
import { generator, numbersOf, type Generator } from '../random.ts';
import {
  holds, isByRecord, isListed, mayRead, maySet, refusal, seenBy, told, verdict,
  type Asker, type Cells, type Operation, type Row,
} from './model.ts';
import { openWorld, people, statusOr, usersCount, type Modelled, type Someone, type World } from './world.ts';

/** How many questions are asked of one world. */
const questionsPerWorld = 300;

/** Asks so many questions by chance, and fails at the first answer that the model forbids. */
export async function askByChance(use: string, count: number): Promise<void> {
  const random = generator(use);
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
  /** What was asked and answered, for the message of a failure. */
  readonly told: string;
}

interface Sent {
  readonly json?: unknown;
  readonly fields?: Readonly<Record<string, string>>;
}

type Filter = readonly [query: string, passes: (row: Row) => boolean];
type Values = Readonly<Record<string, unknown>>;

/** Somebody whose record it is not, and whom it does not name. */
const strange: Row = { id: 0, ownerId: -1, version: 0, values: {} };

const shownOf = ({ id, values }: Row): object => ({ id, ...values });
const markOf = ({ id, version }: Row): string => `${id}-${version}`;
/** What values look like: absent members are not there. */
const plain = (values: Values): Values => JSON.parse(JSON.stringify(values));

/** Whether records decide on what somebody sees. */
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
  /** What was sent last with a key. */
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
    // What was asked lately, now that something may have changed.
    const isAgain = random.below(3) === 0;
    const number = isAgain ? Math.max(0, this.#questions - 1 - random.below(12)) : this.#questions++;
    this.#random = numbersOf(`${this.#salt} ${number}`);
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

  /** What `embed` takes of a collection: its reference, and what refers to it. */
  #embeddables(of: Modelled): { name: string; other: Modelled; kind: 'one' | 'list' | 'referring' }[] {
    const { reference } = of;
    const own = reference && {
      name: reference.field, other: this.#of(reference.to), kind: reference.isList ? 'list' as const : 'one' as const,
    };
    const others = this.#world.collections.filter((each) => each.reference?.to === of.name);
    return [...(own ? [own] : []), ...others.map((other) => ({ name: other.name, other, kind: 'referring' as const }))];
  }

  /** What a record shows to somebody with what is embedded, and the versions of all that is shown. */
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
    const who = seenBy(cells.read, someone);
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
    const refused = verdict(cells, 'read', who, row) ?? (isRefused ? 403 : undefined);
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
    const who = seenBy(cells.list, someone);
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
    const refused = refusal(cells, 'list', who) ?? (isRefused ? 403 : undefined);
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

  /** The status that refuses values, whoever may write: of a reference, or of what is not unique. */
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
    const who = seenBy(of.cells.create, someone);
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
    const refused = refusal(of.cells, 'create', who);
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
    const who = seenBy(of.cells[operation], someone);
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
    const refused = verdict(of.cells, operation, who, before) ?? (isStale ? 412 : undefined);
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
    const who = seenBy(of.cells.remove, someone);
    const id = this.#someId(of);
    const row = of.rows.get(id);
    const isStale = this.#random.below(6) === 0;
    const fields = isStale ? { 'if-match': '"of-no-version"' } : {};
    const answer = await this.#send(someone, 'DELETE', `/${of.name}/${id}`, { fields });
    const { told } = answer;
    const refused = verdict(of.cells, 'remove', who, row) ?? (isStale ? 412 : undefined);
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

  /** What goes along with a record, what is changed, and what refuses it. */
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
        const got = await statusOr(async () => program.get(id, { as }) ?? 404);
        return assert.deepEqual(got, verdict(of.cells, 'read', who, row) ?? (row && shownOf(row)), told);
      }
      case 'list': {
        const got = await statusOr(() => program.list({ as, sort: '-rank', total: true, limit: 3 }));
        const [, compare = () => 0] = orders.find(([sort]) => sort === 'sort=-rank') ?? [];
        const records = [...listed].sort(compare).slice(0, 3).map(shownOf);
        const refused = refusal(of.cells, 'list', who);
        if (refused !== undefined) return assert.equal(got, refused, told);
        return assert.deepEqual([Object(got).records, Object(got).total], [records, listed.length], told);
      }
      case 'count': {
        const got = await statusOr(async () => program.count({ as }));
        return assert.equal(got, refusal(of.cells, 'list', who) ?? listed.length, told);
      }
      case 'write': {
        const got = await statusOr(() => app.write((tx) => tx.collection(of.name).get(id) ?? 404, { as }));
        return assert.deepEqual(got, verdict(of.cells, 'read', who, row) ?? (row && shownOf(row)), told);
      }
      case 'change': {
        const got = await statusOr(() => program.change(id, {}, { as }));
        return assert.deepEqual(got, verdict(of.cells, 'patch', who, row) ?? (row && shownOf(row)), told);
      }
      case 'remove': {
        const got = await statusOr(() => program.remove(id, { as }));
        const refused = verdict(of.cells, 'remove', who, row);
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
      const kind = told(cells, who, before, after);
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
