/** What embedders import as `cairn-api`: an app, collections of one's own, and the types that belong to them. */
import { createApp, type Administrator, type App, type AppOptions } from './app.ts';
import type { Unready } from './api/service-handlers.ts';
import type { Access, Principal, Role } from './auth/access.ts';
import { KeyRingError } from './auth/keys.ts';
import { CairnError, InvariantError, type CairnErrorOptions, type ErrorCode, type Issue } from './base/errors.ts';
import type { JsonObject, JsonValue, Scalar } from './base/json.ts';
import type { Clock, Random } from './base/system.ts';
import type { Fields } from './http/fields.ts';
import type { PlainReply, PlainRequest } from './http/inject.ts';
import type { RequestEntry } from './http/message.ts';
import type { TlsTexts } from './http/server.ts';
import { createLog } from './log.ts';
import type { Log, LogDetails, LogLevel, LogOptions, LogSink, SecurityEvent } from './log.ts';
import { defineCollection, type CollectionAccess, type CollectionDeclaration } from './resources/collection.ts';
import type { Change, Hooks } from './resources/hooks.ts';
import type { UserRecord, Users } from './resources/users.ts';
import { boolean, choice, defaulted, email, integer, number, optional, text, timestamp } from './schema/field.ts';
import type { Field, Presence, Rule, Shape } from './schema/field.ts';
import { LockedError, StoreDamageError, type Collection, type Store, type StoreStatus } from './store/store.ts';

export { CairnError, createApp, createLog, defineCollection, InvariantError, KeyRingError, LockedError };
export { StoreDamageError };
export { boolean, choice, defaulted, email, integer, number, optional, text, timestamp };
export type { Access, Administrator, App, AppOptions, CairnErrorOptions, Change, Clock, Collection, CollectionAccess };
export type { CollectionDeclaration, ErrorCode, Field, Fields, Hooks, Issue, JsonObject, JsonValue, Log, LogDetails };
export type { LogLevel, LogOptions, LogSink, PlainReply, PlainRequest, Presence, Principal, Random, RequestEntry };
export type { Role, Rule, Scalar, SecurityEvent, Shape, Store, StoreStatus, TlsTexts, Unready, UserRecord, Users };
