import type { Load } from '../../test/support/handbook.ts';

/** An element of a page, as `jsdom` has it. */
export type Page = ReturnType<typeof Object>;

/**
 * Makes a `jsdom` window global in this process, except for names that Node.js has itself. Browser packages loaded
 * afterwards use it as their browser.
 */
export async function openWindow(load: Load): Promise<Page> {
  process.env['NODE_ENV'] = 'production';
  const { JSDOM } = await load('jsdom/lib/api.js');
  const { window } = new JSDOM('<div id="root"></div>', { url: 'http://localhost/', pretendToBeVisual: true });
  const taken = new Set(['navigator', 'Event', 'EventTarget', 'CustomEvent', 'localStorage']);
  for (const name of Object.getOwnPropertyNames(window)) {
    if (name in globalThis && !taken.has(name)) continue;
    Object.defineProperty(globalThis, name, { configurable: true, get: () => window[name] });
  }
  // Parts that jsdom lacks.
  const none = (): void => undefined;
  const listeners = { addListener: none, removeListener: none, addEventListener: none, removeEventListener: none };
  Object.assign(window, { scrollTo: none, matchMedia: (media: string) => ({ matches: false, media, ...listeners }) });
  class Observer {
    observe = none;
    unobserve = none;
    disconnect = none;
  }
  Object.assign(globalThis, { ResizeObserver: Observer, IntersectionObserver: Observer });
  // A package's cache has a timer of minutes, which would keep the process alive.
  const start = globalThis.setTimeout;
  const startShort = (work: (...values: unknown[]) => void, delay = 0, ...values: unknown[]) => {
    const timer = start(() => work(...values), delay);
    return delay > 100_000 ? timer.unref() : timer;
  };
  Object.assign(globalThis, { setTimeout: Object.assign(startShort, start) });
  return window;
}

/** Resolves with the result of `find`, as soon as a change of the page provides it. */
export function waitFor<T>(window: Page, what: string, find: () => T | undefined | false): Promise<T> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const found = find();
      if (found === undefined || found === false) return;
      observer.disconnect();
      clearTimeout(timer);
      resolve(found);
    };
    const observer = new window.MutationObserver(look);
    const timer = setTimeout(() => {
      observer.disconnect();
      reject(new Error(`${what} was not shown: ${window.document.body.textContent.slice(0, 600)}`));
    }, 60_000);
    observer.observe(window.document, { subtree: true, childList: true, attributes: true, characterData: true });
    look();
  });
}

/** Replaces a field's content, as a person does. */
export function typeText(window: Page, field: Page, value: string): void {
  const { HTMLInputElement, HTMLTextAreaElement, Event } = window;
  const { prototype } = field.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(prototype, 'value')?.set?.call(field, value);
  field.dispatchEvent(new Event('input', { bubbles: true }));
}
