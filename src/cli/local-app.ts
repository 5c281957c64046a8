import { openApp, type Application } from '../app/app.ts';
import { LocalRequest } from '../app/local-request.ts';
import { defaultOptions, type CompleteOptions } from '../app/options.ts';
import { CairnError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { systemRandom } from '../base/system.ts';
import type { Settings } from '../config/options.ts';

/** By default, the caller is the local administrator. */
export async function withApp<T>(
  options: Partial<CompleteOptions>,
  settings: Partial<Settings>,
  work: (app: Application) => Promise<T>,
): Promise<T> {
  const app = await openApp({
    ...defaultOptions,
    ...options,
    page: false,
    // It signs nothing, so it needs no key of the server.
    secret: systemRandom(32).toString('hex'),
    settings: { ...defaultOptions.settings, auth: 'none', ...settings },
  });
  await app.begin();
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}

/** @throws CairnError for a refusal */
export async function ask(
  { server: { options } }: Application,
  method: string,
  target: string,
  body: JsonObject = {},
): Promise<JsonObject> {
  const fields = ['host', 'localhost', 'content-type', 'application/json'];
  const receive = (): Buffer => Buffer.from(JSON.stringify(body));
  const request = new LocalRequest(options, { method, target, fields, receive });
  const reply = await options.handle(request);
  const answer: JsonObject = JSON.parse(String(reply.body));
  if (reply.status < 400) return answer;
  // A cluster node that is cut off responds with a problem instead of throwing.
  throw new CairnError('store_unavailable', String(answer['detail'] ?? answer['title']));
}
