import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { temporaryDirectory } from '../support/cli/spawn.ts';
import { projectDirectory } from '../support/source.ts';

/** The names that `.ci/declarations.js` exports. */
interface Declarations {
  declarationsOf(index: string): {
    readonly reached: ReadonlyMap<string, { readonly path: string }>;
    readonly outside: ReadonlyMap<string, string>;
    readonly exported: readonly string[];
  };
}

const compiler = join(projectDirectory, 'node_modules', 'typescript', 'bin', 'tsc');
const skip = !existsSync(compiler) && 'needs the compiler, which prints declarations';

/** A name here is a promise: a version 1.0 can add some, and never take one away. */
const exported = `
  createApp AppOptions SimpleLog Administrator App AppStatus Load Unready ListenOptions TlsTexts
  PlainRequest PlainReply FetchOptions RequestEntry
  defineRoute reply OwnRoute RouteCall RouteDefinition RouteReply
  defineCollection DefinedCollection CollectionAccess CollectionDeclaration CollectionDefinition Field Shape
  DeclaredCollection ProgramCollection ListOptions ListPage WriteOptions Input Output Patch Where
  ProgramUsers User UserInput UserPatch As Caller
  ProgramSingle Members ProgramTransaction TransactionCollection TransactionSingle Change Hooks Read
  createLog Log LogDetails LogLevel LogOptions LogSink SecurityEvent
  CairnError CairnErrorOptions ErrorCode Issue InvariantError OptionError KeyRingError LockedError StoreDamageError
  Clock systemClock Random JsonObject JsonValue Scalar
`;

/** Types from outside `programs/` that they consist of: options, fields, words, and the cases of damaged files. */
const reachedOnly: Readonly<Record<string, string>> = {
  'config/options.ts': 'ClusterOptions Settings',
  'app/options.ts': 'BasicOptions',
  'api/call.ts': 'Method',
  'auth/access.ts': 'Access AccessWord Cell Role',
  'accounts/events.ts': 'AuditEvent auditEvents',
  'base/record-id.ts': 'RecordId RecordNumber isId',
  'collections/declaration.ts': 'CollectionHints IdDefinition',
  'schema/field.ts': 'BooleanField ChoiceField EmailField FieldHints FieldOf IdField IdKind JsonField LikeKind ' +
    'ListField NumberField ObjectField PasswordField ReferenceField TextField TimestampField Unique UrlField Value ' +
    'colorNames likeKinds',
  'log/log.ts': 'Format LineFields Observer',
  'base/errors.ts': 'ExitCode FatalError exitMeanings problems',
  'base/budget.ts': 'Refusals',
  'store/store.ts': 'MisfitCause StoreState',
  'store/format/damage.ts': 'Damage',
  'store/recovery/cases.ts': 'Refusal RefusalLabel',
};

const words = (text: string): string[] => text.trim().split(/\s+/).sort();

test('the types of the package are the listed ones, and reach nothing else of the inside', { skip }, async (t) => {
  const directory = temporaryDirectory(t);
  const flags = ['--noEmit', 'false', '--emitDeclarationOnly', '--noCheck', '--outDir', directory];
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.json', ...flags], {
    cwd: projectDirectory, encoding: 'utf8',
  });
  assert.equal(status, 0, stdout);
  const script = pathToFileURL(join(projectDirectory, '.ci', 'declarations.js'));
  // It is JavaScript, with the types above.
  const { declarationsOf } = await import(script.href) as Declarations;
  const types = declarationsOf(join(directory, 'index.d.ts'));
  assert.deepEqual(types.exported.toSorted(), words(exported));
  assert.deepEqual([...new Set(types.outside.values())], ['node:http']);
  const found: Record<string, string[]> = {};
  for (const [name, { path }] of types.reached) {
    const file = relative(directory, path).replaceAll('\\', '/').replace('.d.ts', '.ts');
    if (!types.exported.includes(name) && !file.startsWith('programs/')) (found[file] ??= []).push(name);
  }
  for (const names of Object.values(found)) names.sort();
  assert.deepEqual(found, Object.fromEntries(Object.entries(reachedOnly).map(([file, names]) => [file, words(names)])));
});
