/**
 * The picture of README.md: the page's drawing of these collections, in light and in dark, as self-contained files.
 * With `WRITE=1` in the environment, this writes them.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { defineCollection } from '../../src/index.ts';
import { createApp } from '../../test/support/inside.ts';
import { readProjectFile } from '../../test/support/handbook.ts';
import { Browser, hasBrowser } from './webdriver.ts';

const name = { kind: 'text', min: 1 } as const;
const collections = [
  defineCollection({ name: 'categories', singular: 'category', fields: { name: { ...name, unique: true } } }),
  defineCollection({
    name: 'customers', singular: 'customer',
    fields: { name, email: { kind: 'email', unique: true }, isCompany: { kind: 'boolean', default: false } },
  }),
  defineCollection({
    name: 'products', singular: 'product',
    fields: {
      name, price: { kind: 'number', min: 0 },
      categoryId: { kind: 'reference', to: 'categories', optional: true, onDelete: 'clear' },
      tags: { kind: 'list', of: { kind: 'text' }, optional: true },
    },
  }),
  defineCollection({
    name: 'orders', singular: 'order', timestamps: true,
    fields: {
      customerId: { kind: 'reference', to: 'customers' }, state: { kind: 'choice', values: ['open', 'paid', 'sent'] },
    },
  }),
  defineCollection({
    name: 'reviews', singular: 'review',
    fields: {
      stars: { kind: 'integer', min: 1, max: 5 }, text: { kind: 'text', multiline: true },
      productId: { kind: 'reference', to: 'products', onDelete: 'remove' },
    },
  }),
  defineCollection({
    name: 'lines', singular: 'line',
    fields: {
      orderId: { kind: 'reference', to: 'orders', onDelete: 'remove' },
      productId: { kind: 'reference', to: 'products' }, count: { kind: 'integer', min: 1 },
    },
  }),
];

/** Returns the picture as a file, without links, and with page.css's rules in the colours of one scheme. */
const drawScript = `
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const root = rules.find((rule) => rule.selectorText === ':root').style;
  const colours = (text) => text.replaceAll(/var\\((--\\w+)\\)/g, (_, name) =>
    root.getPropertyValue(name).match(/#\\w+/g)[arguments[0]]);
  const css = [...rules.find((rule) => rule.selectorText === '.schema').cssRules]
    .flatMap(({ selectorText = '', style }) => selectorText.includes('lit') ? [] : [
      selectorText.replaceAll('& ', '') + '{' + colours(style.cssText) + '}']);
  const svg = document.querySelector('svg.schema').cloneNode(true);
  const style = document.createElementNS(svg.namespaceURI, 'style');
  style.textContent = 'svg{fill:none;font:13px system-ui,sans-serif}' + css.join('');
  svg.prepend(style);
  const { outerHTML } = svg;
  return outerHTML.replace('<svg', '<svg xmlns="http://www.w3.org/2000/svg"')
    .replaceAll(/ key="[^"]*"/g, '').replaceAll(/<a [^>]*>/g, '<g>').replaceAll('</a>', '</g>')
    .replaceAll(/(?=<(path|g|rect|text\\b))/g, '\\n') + '\\n';
`;

const skip = hasBrowser ? false : 'there is no chromium and chromedriver on this machine';

test('the picture in README.md is what the page draws, light and dark', { skip }, async (t) => {
  const app = await createApp({ auth: 'none', users: false, items: false, collections });
  t.after(() => app.close());
  const port = await app.listen({ port: 0, host: '127.0.0.1' });
  const browser = await Browser.start();
  t.after(() => browser.stop());
  await browser.open(`http://127.0.0.1:${port}/#/schema`);
  await browser.until('return document.querySelectorAll("svg.schema rect").length === 6');
  for (const [index, scheme] of ['light', 'dark'].entries()) {
    const path = `.github/schema-${scheme}.svg`;
    const drawn: string = await browser.run(drawScript, index);
    if (process.env['WRITE'] !== undefined) writeFileSync(path, drawn);
    assert.equal(readFileSync(path, 'utf8'), drawn);
    assert.ok(readProjectFile('README.md').includes(path), `README.md shows ${path}`);
    // It is a valid image of the stated size.
    await browser.open(`data:image/svg+xml;base64,${Buffer.from(drawn).toString('base64')}`);
    assert.equal(await browser.run('return document.documentElement.querySelectorAll("rect").length'), 6);
    await browser.open(`http://127.0.0.1:${port}/#/schema`);
    await browser.until('return document.querySelectorAll("svg.schema rect").length === 6');
  }
});
