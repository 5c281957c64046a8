/**
 * The exports of the package `cairn-api`: an app, declarations of collections, and their
 * types, which use those of `@types/node`.
 */
/// <reference types="node" preserve="true" />
export { createApp } from './programs/app.ts';
export type { App } from './programs/app.ts';
export type { Load } from './log/operated.ts';
export type { Administrator } from './app/administrator.ts';
export type { AppOptions } from './programs/options.ts';
export type { Unready } from './api/health.ts';

export { defineCollection } from './collections/define.ts';
export type {
  CollectionAccess,
  CollectionDeclaration,
  CollectionDefinition,
} from './collections/declaration.ts';
export type { Field, Shape } from './schema/field.ts';
export type { ProgramCollection } from './programs/collection.ts';
export type { Change, Hooks, Members, Read } from './programs/hooks.ts';
export type { Access, Principal, Role } from './auth/access.ts';

export { createLog } from './log/log.ts';
export type { Log, LogDetails, LogLevel, LogOptions, SecurityEvent } from './log/log.ts';

export type { LogSink } from './log/line-queue.ts';

export { CairnError, InvariantError } from './base/errors.ts';
export type { CairnErrorOptions, ErrorCode, Issue } from './base/errors.ts';
export { OptionError } from './config/options.ts';
export { KeyRingError } from './auth/keys.ts';
export { LockedError } from './store/disk/lock.ts';
export { StoreDamageError } from './store/format/damage.ts';

export type { Clock, Random } from './base/system.ts';
export type { JsonObject, JsonValue, Scalar } from './base/json.ts';
export type { Fields } from './http/fields.ts';
export type { PlainReply, PlainRequest } from './programs/inject.ts';
export type { RequestEntry } from './http/message.ts';
export type { ListenOptions, TlsTexts } from './http/server.ts';
export type { UserRecord } from './accounts/records.ts';
export type { Users } from './accounts/users.ts';
export type { Collection, Store, StoreStatus } from './store/store.ts';
