/**
 * Listeners lose their connections at random while items change; each must end with exactly what GET /items returns.
 *
 *   CAIRN_FEED_CUTS=1000 node --import tsx --test .ci/torture/changes.torture.ts
 */
import assert from 'node:assert/strict';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import { temporaryDirectory } from '../../test/support/cli/spawn.ts';
import { createGenerator, waitUntil } from '../../test/support/basics.ts';
import { createApp, type App } from '../../test/support/inside.ts';

const cutsWanted = Number(process.env['CAIRN_FEED_CUTS'] ?? 250);
const listeners = 8;

const seen = { cuts: 0, events: 0, resets: 0, restarts: 0, writes: 0 };

/** The commit of an event, and its position in it. */
function placeOf(id: string): [sequence: number, part: number] {
  const [, sequence = '', part = ''] = /-(\d+)(?:\.(\d+))?$/.exec(id) ?? [];
  return [Number(sequence), part === '' ? Infinity : Number(part)];
}

/** A client as the manual prescribes: it opens the stream, reads the list, and applies the events. */
class Listener {
  readonly items = new Map<number, unknown>();
  lastId = '';
  isOver = false;
  /** Events that came while the list was being read. */
  #held: (() => void)[] | undefined;
  #reply: IncomingMessage | undefined;
  readonly #port: () => number;

  constructor(port: () => number) {
    this.#port = port;
  }

  async run(): Promise<void> {
    while (!this.isOver) {
      await this.#listen().catch(() => undefined);
      await delay(5);
    }
  }

  cut(): void {
    this.#reply?.destroy();
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const headers = { host: 'localhost', ...(this.lastId !== '' && { 'last-event-id': this.lastId }) };
      const asked = get({ port: this.#port(), host: '127.0.0.1', path: '/changes', headers, agent: false }, (reply) => {
        if (reply.statusCode !== 200) return void reply.destroy();
        this.#reply = reply;
        let text = '';
        reply.setEncoding('utf8').on('data', (piece: string) => {
          const blocks = (text + piece).split('\n\n');
          // An incomplete event does not count.
          text = blocks.pop() ?? '';
          for (const block of blocks) this.#take(block);
        });
        reply.on('close', resolve).on('error', reject);
      });
      asked.on('error', reject);
    });
  }

  #take(block: string): void {
    const [, event] = /^event: (.*)$/m.exec(block) ?? [];
    const [, id] = /^id: (.*)$/m.exec(block) ?? [];
    const [, data = '{}'] = /^data: (.*)$/m.exec(block) ?? [];
    const isFirst = this.lastId === '' && id !== undefined;
    if (event !== undefined && event !== 'reset' && id !== undefined) {
      const [[sequence, part], [lastSequence, lastPart]] = [placeOf(id), placeOf(this.lastId)];
      const isNext = sequence > lastSequence || (sequence === lastSequence && part > lastPart);
      assert.ok(isNext, `${id} after ${this.lastId}`);
    }
    if (id !== undefined) this.lastId = id;
    if (event === 'reset') seen.resets += 1;
    if (isFirst || event === 'reset') void this.#readList();
    if (event === undefined || event === 'reset') return;
    seen.events += 1;
    const change: { collection: string; id: number; record?: unknown } = JSON.parse(data);
    if (change.collection !== 'items') return;
    const apply = (): void => {
      if (event === 'removed') this.items.delete(change.id);
      else this.items.set(change.id, change.record);
    };
    if (this.#held === undefined) apply();
    else this.#held.push(apply);
  }

  async #readList(): Promise<void> {
    const held: (() => void)[] = [];
    this.#held = held;
    for (;;) {
      try {
        const items = await itemsAt(this.#port());
        // A later reset reads the list once more.
        if (this.#held !== held) return;
        this.items.clear();
        for (const item of items) this.items.set(item.id, item);
        break;
      } catch {
        await delay(5);
      }
    }
    this.#held = undefined;
    for (const apply of held) apply();
  }
}

async function itemsAt(port: number): Promise<{ id: number }[]> {
  const response = await fetch(`http://localhost:${port}/items`);
  assert.equal(response.status, 200);
  return JSON.parse(await response.text());
}

test(`${listeners} listeners have the current list after ${cutsWanted} interruptions`, async (t) => {
  const random = createGenerator('changes');
  const directory = join(temporaryDirectory(t), 'data');
  let port = 0;
  const start = async (): Promise<App> => {
    const app = await createApp({ directory, auth: 'none' });
    port = await app.listen({ port, host: '127.0.0.1' });
    return app;
  };
  let app = await start();
  t.after(() => app.close());
  const all = Array.from({ length: listeners }, () => new Listener(() => port));
  const running = all.map((listener) => listener.run());
  const endAll = async (): Promise<void> => {
    for (const listener of all) {
      listener.isOver = true;
      listener.cut();
    }
    await Promise.all(running);
  };
  t.after(endAll);

  const fields = { 'content-type': 'application/json' };
  let highest = 0;
  const write = async (): Promise<void> => {
    const kind = random.below(10);
    const one = (): object => ({ name: `Thing ${random.below(1000)}`, price: random.below(1000) });
    const target = `/items/${1 + random.below(Math.max(1, highest))}`;
    if (kind < 4 || kind === 9) {
      const json = kind === 9 ? Array.from({ length: 1 + random.below(50) }, one) : one();
      const path = kind === 9 ? '/items/batch' : '/items';
      const asked = { method: 'POST', target: path, fields, body: JSON.stringify(json) };
      const { status, body } = await app.inject(asked);
      assert.equal(status, 201, body);
      for (const { id } of [JSON.parse(body)].flat()) highest = Math.max(highest, id);
    } else {
      const method = kind < 7 ? 'PUT' : 'DELETE';
      const asked = { method, target, fields, ...(method === 'PUT' && { body: JSON.stringify(one()) }) };
      const { status } = await app.inject(asked);
      assert.ok([200, 204, 404].includes(status), `${method}: ${status}`);
    }
    seen.writes += 1;
  };

  while (seen.cuts < cutsWanted) {
    await Promise.all(Array.from({ length: 1 + random.below(8) }, write));
    if (random.below(3) === 0) {
      random.pick(all).cut();
      seen.cuts += 1;
    }
    if (random.below(40) === 0) {
      await app.close();
      app = await start();
      // Sometimes more happens before anybody is back.
      if (random.below(2) === 0) await write();
      seen.restarts += 1;
    }
    await delay(random.below(4));
  }

  await app.inject({ method: 'POST', target: '/items', fields, body: JSON.stringify({ name: 'The last', price: 0 }) });
  const { sequence } = app.store.status();
  await waitUntil(() => all.every(({ lastId }) => placeOf(lastId)[0] >= sequence), 'not all is told');
  await delay(500);
  const items = await itemsAt(port);
  for (const listener of all) {
    assert.deepEqual([...listener.items.values()].sort((a, b) => Object(a).id - Object(b).id), items);
  }
  await endAll();
  t.diagnostic(JSON.stringify({ items: items.length, ...seen }));
});
