import type { CollectionDeclaration } from '../collections/declaration.ts';
import type { ReferenceRules } from '../collections/declared.ts';
import { inManual } from '../base/manual.ts';
import { OptionError } from '../config/options.ts';
import { parseOrigins } from '../http/cross-site.ts';
import { referenceIn } from '../schema/field.ts';
import type { CompleteOptions } from './options.ts';
import type { FeatureModule, Options, Parts } from './part-types.ts';

const productGuide = 'json-server.md#from-a-prototype-to-a-product';

/**
 * The parts that a server can do without: options, which a flag turns on, and features, which are
 * on. Each is a folder that only its line here loads, before the server is ready. To remove a part,
 * delete both.
 */
export const optionalParts: Options = {
  cluster: () => import('../options/cluster/node.ts'),
  cors: () => import('../options/cors/cors.ts'),
  dialect: () => import('../options/dialect/json-server.ts'),
  local: () => import('../options/local/local.ts'),
  proxies: () => import('../options/proxies/proxies.ts'),
  references: () => import('../options/references/references.ts'),
  singles: () => import('../options/singles/singles.ts'),
  readableLog: () => import('../options/readable-log/format.ts'),
  tls: () => import('../options/tls/certificate.ts'),
};

const features: Readonly<Record<string, () => Promise<FeatureModule>>> = {
  feed: () => import('../features/feed/feed.ts'),
  keys: () => import('../features/keys/keys.ts'),
  metrics: () => import('../features/metrics/metrics.ts'),
  openapi: () => import('../features/openapi/openapi.ts'),
  page: () => import('../features/page/page.ts'),
};

/** @throws OptionError if a part that the app needs was removed */
export async function loadParts(chosen: CompleteOptions): Promise<Parts> {
  const { cluster, collections, settings } = chosen;
  const { auth, corsOrigins, dialect, share, shareHosts, trustedProxies } = settings;
  if (dialect !== undefined && settings.auth !== 'none')
    throw new OptionError(
      'Cannot use --dialect: its clients do not sign in, so it needs --auth none; with users, ' +
        `write their requests in Cairn's form (see ${inManual(productGuide)})`,
    );
  if (share && auth !== 'none')
    throw new OptionError(
      'Cannot use --share: it serves everyone nearby, so it needs --auth none',
      'share',
    );
  const allowed = parseOrigins(corsOrigins);
  const local =
    auth === 'none'
      ? (await loadOption(optionalParts.local, '--auth none')).createLocal({
          allowed,
          share,
          hosts: shareHosts,
        })
      : undefined;
  const origins = local?.origins ?? allowed;
  return {
    origins,
    local,
    // Without authentication, there are no keys.
    features: await loadFeatures({ ...chosen, keys: settings.auth === 'required' }),
    dialect: dialect && (await loadOption(optionalParts.dialect, '--dialect')),
    place:
      chosen.place ??
      (cluster &&
        (await loadOption(optionalParts.cluster, '--cluster')).joinCluster(
          cluster,
          chosen,
          'serve',
        )),
    cors:
      corsOrigins.length === 0 && !share
        ? undefined
        : (await loadOption(optionalParts.cors, '--cors-origin')).createCors(origins, {
            isOpen: dialect !== undefined,
          }),
    proxies:
      trustedProxies.length === 0
        ? undefined
        : (await loadOption(optionalParts.proxies, '--trust-proxy')).createProxies(trustedProxies),
    singles: collections.some(({ isSingle }) => isSingle)
      ? await loadOption(optionalParts.singles, '"single": true')
      : undefined,
  };
}

/**
 * Loads the features except the ones set to false in `chosen`. One after the other, because Jest
 * links modules wrongly if concurrent imports share one.
 */
export async function loadFeatures(chosen: object): Promise<readonly FeatureModule[]> {
  const loaded: FeatureModule[] = [];
  for (const [name, load] of Object.entries(features))
    if (Reflect.get(chosen, name) !== false) loaded.push(await load());
  return loaded;
}

/** Loads the rules of references if a field of these collections refers, or an owner counts. */
export async function loadReferences(
  collections: readonly CollectionDeclaration[],
): Promise<ReferenceRules | undefined> {
  const fields = collections.flatMap((each) => Object.values(each.fields));
  const refers =
    fields.some((field) => referenceIn(field) !== undefined) ||
    collections.some(({ ownerRemoved }) => ownerRemoved !== undefined);
  if (!refers) return undefined;
  return (await loadOption(optionalParts.references, 'a field that refers to records')).references;
}

/** @throws OptionError if the part was removed */
export function loadOption<P>(part: (() => Promise<P>) | undefined, option: string): Promise<P> {
  if (part !== undefined) return part();
  throw new OptionError(`Cannot use ${option}: this installation has been built without it`);
}
