/**
 * The exports of the package `cairn-api`: an app, declarations of collections, and their
 * types, which need `@types/node`.
 */
/// <reference types="node" preserve="true" />
export { createApp, defineRoute } from './programs/app.ts';
export { reply } from './programs/routes.ts';
export type { OwnRoute, RouteCall, RouteDefinition, RouteReply } from './programs/routes.ts';
export type { App, AppStatus, ProgramUsers, User, UserInput, UserPatch } from './programs/app.ts';
export { createLog, defineCollection } from './programs/options.ts';
export type { AppOptions, SimpleLog } from './programs/options.ts';
export type { Administrator } from './app/administrator.ts';
export type { As, Caller } from './programs/callers.ts';
export type {
  DeclaredCollection,
  ListOptions,
  ListPage,
  ProgramCollection,
  ProgramSingle,
  WriteOptions,
} from './programs/collection.ts';
export type {
  Members,
  ProgramTransaction,
  TransactionCollection,
  TransactionSingle,
} from './programs/write.ts';
export type { Input, Output, Patch, Where } from './programs/types.ts';
export type { FetchOptions, PlainReply, PlainRequest } from './programs/inject.ts';
export type { Change, Hooks, Read } from './programs/hooks.ts';

export type { DefinedCollection } from './collections/define.ts';
export type {
  CollectionAccess,
  CollectionDeclaration,
  CollectionDefinition,
} from './collections/declaration.ts';
export type { Field, Shape } from './schema/field.ts';

export type { Log, LogDetails, LogLevel, LogOptions, SecurityEvent } from './log/log.ts';
export type { LogSink } from './log/line-queue.ts';
export type { Load } from './log/operated.ts';
export type { Unready } from './api/health.ts';

export { CairnError, InvariantError } from './base/errors.ts';
export type { CairnErrorOptions, ErrorCode, Issue } from './base/errors.ts';
export { OptionError } from './config/options.ts';
export { KeyRingError } from './auth/keys.ts';
export { LockedError } from './store/disk/lock.ts';
export { StoreDamageError } from './store/recovery/damage-error.ts';

export { systemClock } from './base/system.ts';
export type { Clock, Random } from './base/system.ts';
export type { JsonObject, JsonValue, Scalar } from './base/json.ts';
export type { RequestEntry } from './http/message.ts';
export type { ListenOptions, TlsTexts } from './http/server.ts';
