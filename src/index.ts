/** What embedders import as `cairn-api`: an app, collections of one's own, and the types that belong to them. */
import { createApp, type App, type AppOptions } from './app.ts';
import type { Access, Principal, Role } from './auth/access.ts';
import { CairnError, type ErrorCode, type Issue } from './base/errors.ts';
import type { Clock, Random } from './base/system.ts';
import type { PlainReply, PlainRequest } from './http/inject.ts';
import { createLog, type Log, type LogOptions, type RequestEntry, type SecurityEvent } from './log.ts';
import { defineCollection, type CollectionAccess, type CollectionDeclaration } from './resources/collection.ts';
import type { Change, Hooks } from './resources/hooks.ts';
import {
  boolean,
  choice,
  defaulted,
  email,
  integer,
  number,
  optional,
  readOnly,
  text,
  timestamp,
  type Field,
  type Shape,
} from './schema/field.ts';
import { LockedError, StoreDamageError } from './store/store.ts';

export { CairnError, createApp, createLog, defineCollection, LockedError, StoreDamageError };
export { boolean, choice, defaulted, email, integer, number, optional, readOnly, text, timestamp };
export type { Access, App, AppOptions, Change, Clock, CollectionAccess, CollectionDeclaration, ErrorCode, Field };
export type { Hooks, Issue, Log, LogOptions, PlainReply, PlainRequest, Principal, Random, RequestEntry, Role };
export type { SecurityEvent, Shape };
