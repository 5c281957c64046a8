import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { CairnError } from '../../../src/base/errors.ts';
import type { CollectionDefinition } from '../../../src/collections/declaration.ts';
import { defineCollection } from '../../../src/collections/define.ts';
import type { Caller } from '../../../src/programs/callers.ts';
import { createApp, type App } from '../inside.ts';
import type { Generator } from '../random.ts';
import { isByRecord, served, stranger, type Asker, type Cells, type Operation, type Row } from './model.ts';

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
  /** As they are served. */
  readonly cells: Cells;
  /** The field that refers, if there is one. */
  readonly reference: Reference | undefined;
  /** Who may set the price. */
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

/** How many users there are: their ids begin with 1. */
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
    return { name, reference, declared, cells: served(declared), setters, rows: new Map() };
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
    const user = await app.users.add({ name: `User ${index}`, email, password, role: given });
    if (given !== role)
      await app.store.write((tx) => tx.of(app.users.records).replace(user.id, { ...user, role }));
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
  const collections = definitions.map((each) => defineCollection(each));
  const app = await createApp({ collections, roles: ownRoles, secret, scryptCost: 1, items });
  return { app, someones: await someonesOf(app) };
}

/** What a program gets, or the status of its refusal. */
export async function statusOr<T>(work: () => T | Promise<T>): Promise<T | number> {
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
