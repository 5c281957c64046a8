import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { timeoutMs } from '../../test/support/basics.ts';

/** True if this machine can run browser tests (Debian: `chromium`, `chromium-driver`). */
export const hasBrowser = ['chromium', 'chromedriver'].every(
  (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0,
);

/** The key of an element reference (WebDriver §12.1). */
const elementKey = 'element-6066-11e4-a52e-4f735466cecf';

/** Keys other than characters (WebDriver §17.4.2). */
export const keys = {
  tab: '\uE004', enter: '\uE007', escape: '\uE00C', shift: '\uE008', control: '\uE009', up: '\uE013',
  down: '\uE015',
} as const;

export interface LogEntry {
  readonly level: string;
  readonly source: string;
  readonly message: string;
}

/** Holds the page's timers of three seconds and more until `letTimePass`, so that no test waits for time. */
const heldTimers = `
  const { setTimeout, clearTimeout } = window;
  const held = new Map();
  let last = 1e9;
  window.setTimeout = (work, ms = 0, ...more) => {
    if (ms < 3000) return setTimeout(work, ms, ...more);
    held.set((last += 1), () => work(...more));
    return last;
  };
  window.clearTimeout = (id) => void (held.delete(id) || clearTimeout(id));
  window.letTimePass = () => {
    const due = [...held.values()];
    held.clear();
    for (const work of due) work();
  };
`;

/** A browser driven over WebDriver (W3C) with only `fetch`. */
export class Browser {
  readonly #url: string;
  readonly #stop: () => Promise<void>;

  private constructor(url: string, stop: () => Promise<void>) {
    this.#url = url;
    this.#stop = stop;
  }

  /** @param options `preferences` are Chromium's own; `arguments` come in addition to the usual ones of a test */
  static async start(
    options: { arguments?: readonly string[]; preferences?: object } = {},
  ): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'cairn-browser-'));
    const driver = spawn('chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const exit = new Promise((resolve) => driver.once('exit', resolve));
    let port: string | undefined;
    for await (const line of createInterface(driver.stdout)) {
      port = /started successfully on port (\d+)/.exec(line)?.[1];
      if (port !== undefined) break;
    }
    driver.stdout.resume();
    const root = `http://127.0.0.1:${port}`;
    const end = async (): Promise<void> => {
      driver.kill();
      await exit;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    };
    const switches = [
      'headless', 'no-sandbox', 'disable-gpu', 'disable-quic', 'no-first-run', 'disable-background-networking',
      'disable-component-update', 'disable-sync', 'disable-dev-shm-usage', 'lang=en-GB', 'hide-scrollbars',
    ].map((name) => `--${name}`);
    const args = [...switches, `--user-data-dir=${profile}`, ...(options.arguments ?? [])];
    const wanted = {
      'goog:chromeOptions': { args, prefs: options.preferences ?? {} },
      'goog:loggingPrefs': { browser: 'ALL' },
    };
    try {
      const { sessionId } = await send(root, 'POST', '/session', { capabilities: { alwaysMatch: wanted } });
      const browser = new Browser(`${root}/session/${sessionId}`, async () => {
        await send(`${root}/session/${sessionId}`, 'DELETE', '');
        await end();
      });
      await browser.devtools('Page.addScriptToEvaluateOnNewDocument', { source: heldTimers });
      return browser;
    } catch (error) {
      await end();
      throw error;
    }
  }

  stop(): Promise<void> {
    return this.#stop();
  }

  async open(url: string): Promise<void> {
    await send(this.#url, 'POST', '/url', { url });
  }

  async back(): Promise<void> {
    await send(this.#url, 'POST', '/back', {});
  }

  async reload(): Promise<void> {
    await send(this.#url, 'POST', '/refresh', {});
  }

  /** Opens a tab and switches to it; returns the handle of the previous tab. */
  async openTab(): Promise<string> {
    const former: string = await send(this.#url, 'GET', '/window');
    const { handle } = await send(this.#url, 'POST', '/window/new', { type: 'tab' });
    await this.switchTo(handle);
    return former;
  }

  async switchTo(handle: string): Promise<void> {
    await send(this.#url, 'POST', '/window', { handle });
  }

  /** Closes this tab, and continues in another one. */
  async closeTab(next: string): Promise<void> {
    await send(this.#url, 'DELETE', '/window');
    await this.switchTo(next);
  }

  /** Runs a function body in the page, and returns its result. */
  run(script: string, ...args: readonly unknown[]): Promise<any> {
    return send(this.#url, 'POST', '/execute/sync', { script, args });
  }

  /** Sends a command of the DevTools protocol. */
  devtools(cmd: string, params: object = {}): Promise<any> {
    return send(this.#url, 'POST', '/goog/cdp/execute', { cmd, params });
  }

  /** Waits until the function body, run in the page, returns something truthy, and returns that. */
  async until(script: string, ...args: readonly unknown[]): Promise<any> {
    for (const end = performance.now() + timeoutMs; performance.now() < end; ) {
      const value = await this.run(script, ...args);
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    const seen = await this.run('return document.body.innerText');
    throw new Error(`Waited in vain for: ${script} ${JSON.stringify(args)}\nThe page shows:\n${seen}`);
  }

  /** Presses keys in turn, wherever the focus is, while `held` is kept down. */
  async press(text: string, held?: string): Promise<void> {
    const strokes = [...text].flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }]);
    const actions = held === undefined
      ? strokes
      : [{ type: 'keyDown', value: held }, ...strokes, { type: 'keyUp', value: held }];
    await send(this.#url, 'POST', '/actions', { actions: [{ type: 'key', id: 'keyboard', actions }] });
  }

  /** Drags with the mouse from one point of the window to another. */
  async drag(from: readonly [number, number], to: readonly [number, number]): Promise<void> {
    const move = ([x, y]: readonly [number, number]): object =>
      ({ type: 'pointerMove', x: Math.round(x), y: Math.round(y), duration: 50 });
    const actions = [move(from), { type: 'pointerDown', button: 0 }, move(to), { type: 'pointerUp', button: 0 }];
    await send(this.#url, 'POST', '/actions', { actions: [{ type: 'pointer', id: 'mouse', actions }] });
  }

  /** Fires all timers that the page has set so far. */
  async letTimePass(): Promise<void> {
    await this.run('window.letTimePass()');
  }

  async click(selector: string): Promise<void> {
    await this.#element(selector, (path) => send(this.#url, 'POST', `${path}/click`, {}));
  }

  /** Replaces what a control contains. */
  async type(selector: string, text: string): Promise<void> {
    await this.#element(selector, async (path) => {
      await send(this.#url, 'POST', `${path}/clear`, {});
      await send(this.#url, 'POST', `${path}/value`, { text });
    });
  }

  async upload(selector: string, path: string): Promise<void> {
    await this.#element(selector, (at) => send(this.#url, 'POST', `${at}/value`, { text: path }));
  }

  /** Returns the console's lines and the browser's own complaints since the last call. */
  log(): Promise<LogEntry[]> {
    return send(this.#url, 'POST', '/se/log', { type: 'browser' });
  }

  /** Signs everyone out of this window. */
  async forget(): Promise<void> {
    await this.open('about:blank');
    await this.devtools('Network.clearBrowserCookies');
    await this.block();
    await this.setOffline(false);
    await this.resize(1280, 800);
    await this.emulate({ 'prefers-reduced-motion': 'reduce' });
    await this.log();
  }

  async setOffline(offline: boolean): Promise<void> {
    const network_conditions = { offline, latency: 0, throughput: -1 };
    await send(this.#url, 'POST', '/chromium/network_conditions', { network_conditions });
  }

  /** Blocks these URL patterns. */
  async block(...urls: readonly string[]): Promise<void> {
    await this.devtools('Network.enable');
    await this.devtools('Network.setBlockedURLs', { urls });
  }

  async resize(width: number, height: number): Promise<void> {
    await this.devtools('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  }

  /** @param features of media queries, such as `prefers-color-scheme` */
  async emulate(features: Readonly<Record<string, string>>, media = ''): Promise<void> {
    const entries = Object.entries(features).map(([name, value]) => ({ name, value }));
    await this.devtools('Emulation.setEmulatedMedia', { media, features: entries });
  }

  async screenshot(path: string): Promise<void> {
    writeFileSync(path, Buffer.from(await send(this.#url, 'GET', '/screenshot'), 'base64'));
  }

  async #element(selector: string, work: (path: string) => Promise<unknown>): Promise<void> {
    await this.until('return document.querySelector(arguments[0])', selector);
    const found = await send(this.#url, 'POST', '/element', { using: 'css selector', value: selector });
    await work(`/element/${found[elementKey]}`);
  }
}

async function send(root: string, method: string, path: string, body?: object): Promise<any> {
  const response = await fetch(root + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const { value } = await response.json() as { value: any };
  if (!response.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
  return value;
}
