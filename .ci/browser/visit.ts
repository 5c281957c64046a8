import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { password, startServer, type ServeOptions, type TestServer } from './server.ts';
import { Browser, hasBrowser, keys } from './webdriver.ts';

/** The tools for a test of the page: a person at a browser, and the server behind the page. */
export interface Visit {
  readonly browser: Browser;
  readonly server: TestServer;
  readonly t: TestContext;
  /** Opens an address of the page, such as `#items/5`, as this signed-in person. */
  signIn(hash?: string, who?: 'ada' | 'grace'): Promise<void>;
  /** Fills in and submits the open sign-in form. */
  enterCredentials(who?: 'ada' | 'grace'): Promise<void>;
  /** Goes to another address of the page, as a link would, and waits for its view. */
  visit(hash: string): Promise<void>;
  /** Waits until the page has nothing to do. */
  idle(): Promise<void>;
  /** Waits for an element, and returns its text. */
  text(selector: string): Promise<string>;
  shows(words: string, within?: string): Promise<void>;
  says(words: string): Promise<void>;
  /** The cells of a column, top to bottom: 1 is the checkbox and 2 the name, if the id is hidden. */
  column(index: number): Promise<string[]>;
  value(field: string): Promise<string>;
  /** Replaces the content of the control for a field. */
  fill(field: string, text: string): Promise<void>;
  /** Opens the form of a filter: of this field, with this operator. */
  filterBy(field: string, operator?: string): Promise<void>;
  hash(): Promise<string>;
  /** The name of the focused element. */
  focused(): Promise<string>;
}

export interface VisitOptions extends ServeOptions {
  /** Statuses of expected refusals, since the browser logs each of them. */
  readonly refusals?: readonly number[];
  /** For `Browser.start`; tests without it share the browser of their file. */
  readonly browser?: Parameters<typeof Browser.start>[0];
  /** True if lines in the console are expected, such as those about an unreachable server. */
  readonly isNoisy?: boolean;
}

const skip = hasBrowser ? false : 'there is no chromium and chromedriver on this machine';
let shared: Browser;

before(async () => {
  if (hasBrowser) shared = await Browser.start();
});
after(() => shared?.stop());

/** A test with a server and a browser window of its own, in which nothing may be written to the console. */
export function testPage(title: string, options: VisitOptions, run: (visit: Visit) => Promise<void>): void {
  test(title, { skip }, async (t) => {
    const server = await startServer(t, options);
    const browser = options.browser === undefined ? shared : await Browser.start(options.browser);
    if (options.browser !== undefined) t.after(() => browser.stop());
    await browser.forget();
    await run(visitOf(browser, server, t));
    // The first request of someone who has not signed in is refused, too.
    const refused = [401, ...(options.refusals ?? [])]
      .map((status) => `the server responded with a status of ${status}`);
    const lines = (await browser.log()).filter(({ level, source, message }) => level !== 'DEBUG' &&
      !(source === 'network' && refused.some((text) => message.includes(text))));
    if (options.isNoisy !== true) assert.deepEqual(lines, []);
  });
}

function visitOf(browser: Browser, server: TestServer, t: TestContext): Visit {
  const visit: Visit = {
    browser, server, t,
    async signIn(hash = '', who = 'ada') {
      const cookie = { ...(await server.signIn(who)), httpOnly: true, secure: true, sameSite: 'Strict' };
      await browser.devtools('Network.setCookie', { url: server.url, ...cookie });
      await browser.open(`${server.url}/${hash}`);
      await browser.until('return !document.querySelector("#who").hidden');
      await visit.idle();
    },
    async enterCredentials(who = 'ada') {
      await browser.until('return document.querySelector("#sign-in[open]")');
      await browser.type('#email', `${who}@example.org`);
      await browser.type('#password', password);
      await browser.click('#credentials .primary');
    },
    async visit(hash) {
      await browser.run('location.hash = arguments[0]', hash);
      await visit.idle();
    },
    async idle() {
      await browser.until(`
        const headings = [...document.querySelectorAll('main h1, #record-title')];
        const heading = headings.some((each) => each.checkVisibility());
        return heading && ![...document.querySelectorAll('[aria-busy=true]')].some((each) => each.checkVisibility());
      `);
    },
    text: (selector) => browser.until('return document.querySelector(arguments[0])?.innerText', selector),
    async shows(words, within = 'body') {
      const script = 'return document.querySelector(arguments[1])?.innerText.includes(arguments[0])';
      await browser.until(script, words, within);
    },
    says: (words) => visit.shows(words, '#news'),
    column: (index) => browser.run(`
      return [...document.querySelectorAll('#list tbody tr')].map((row) => row.children[arguments[0] - 1].innerText)
    `, index),
    async value(field) {
      await browser.until('return document.querySelector(`#field-${arguments[0]}`)', field);
      return browser.run('return document.querySelector(`#field-${arguments[0]}`).value', field);
    },
    async fill(field, text) {
      await browser.until('return document.querySelector(`#field-${arguments[0]}`)', field);
      await browser.type(`#field-${field}`, text);
    },
    async filterBy(field, operator) {
      const press = `
        const at = [...document.querySelectorAll('#filter button')].find((each) => each.innerText === arguments[0]);
        at?.click();
        return at;
      `;
      await browser.click('#add-filter');
      await browser.until(press, field);
      const shown = await visit.text('#condition');
      if (operator === undefined || shown === `${field} ${operator}`) return;
      await browser.until(press, operator);
      await visit.shows(`${field} ${operator}`, '#condition');
    },
    hash: () => browser.run('return location.hash'),
    focused: () => browser.run(`
      const at = document.activeElement;
      return at.ariaLabel || at.labels?.[0]?.innerText || at.innerText;
    `),
  };
  return visit;
}

export { keys, password };
