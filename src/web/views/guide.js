// @ts-check
/**
 * The API's documentation from its OpenAPI document, with samples and a way to run them.
 * `#/api/items?price:gte=10` shows one tag's operations with the filters of a list,
 * `#/api/items/listItems` a single one.
 */
import { Problem } from '../api/call.js';
import { capitalized } from '../api/model.js';
import { ask } from '../lib/dialog.js';
import { bdi, button, draw, h, readInput } from '../lib/dom.js';
import { allows, bearer, findCollection, state, storage } from '../state/me.js';
import { address, route } from '../state/route.js';
import { copy, ownView, table } from './parts.js';

/** @import { Child, Operation, Schema } from '../types.js' */

/**
 * An operation with its place. `target` and `body`: what a person has typed for its next request.
 * @typedef {Operation & { method: string, path: string, tag: string, isOpen?: boolean, target?: string,
 *   body?: string, answer?: { status: string, facts: string, text: string } }} Entry
 */

const answerMax = 100_000;
const languages = ['curl', 'fetch', 'TypeScript'];
/** Requests that would change who is signed in. */
const credentials = /^\/(?:login|logout|tokens)/u;

let language = storage['language'] ?? 'curl';

/**
 * Adds to the description's operations what the views need. What a person opened or typed lasts as
 * long as the description.
 * @returns {Entry[]}
 */
const entries = () =>
  Object.entries(state.description?.paths ?? {}).flatMap(([path, operations]) =>
    Object.entries(operations).map((/** @type {[string, Operation]} */ [method, of]) =>
      Object.assign(of, { method: method.toUpperCase(), path, tag: of.tags?.[0] ?? '' }),
    ),
  );

/** @param {Schema} schema @returns {Schema & { name?: string }} */
function resolved(schema) {
  const name = schema.$ref?.split('/').at(-1);
  return name ? { ...state.description?.components.schemas[name], name } : schema;
}

/** @param {Entry} entry */
const findBody = ({ requestBody }) => Object.values(requestBody?.content ?? {})[0]?.schema;

/** @param {Entry} entry */
const findAnswer = ({ responses }) =>
  (responses?.[200] ?? responses?.[201])?.content?.['application/json']?.schema;

/** @param {Schema} schema @returns {unknown} */
function makeExample(schema) {
  const { examples, properties = {}, items, required = [] } = resolved(schema);
  if (examples) return examples[0];
  if (items) return [makeExample(items)];
  const names = required.length > 0 ? required : Object.keys(properties).slice(1, 2);
  return Object.fromEntries(names.map((name) => [name, makeExample(properties[name] ?? {})]));
}

/** @param {Entry} entry */
function buildRequest(entry) {
  const { method, path, parameters, tag } = entry;
  const isList = parameters?.some(({ name }) => name === 'limit');
  const query = new URLSearchParams(isList && route.of === tag ? route.query : []);
  if (isList && !query.has('limit')) query.set('limit', '10');
  const schema = findBody(entry);
  const example = schema ? JSON.stringify(makeExample(schema), null, 2) : '';
  const {
    body = example,
    target = `${path.replace('{id}', '1').slice(1)}${isList ? `?${query}` : ''}`,
  } = entry;
  return { method, target, body, url: new URL(target, location.href).href };
}

/** @param {Entry} entry */
function writeSample(entry) {
  const { method, body, url } = buildRequest(entry);
  const isPublic = state.isOpen || entry['x-access'] === 'public';
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  if (language === 'curl') {
    const json = body && ` \\\n  --json ${quoted(body)}`;
    return `curl -sS -X ${method} ${quoted(url)}${isPublic ? '' : bearer}${json}`;
  }
  const [answer, sent] = [findAnswer(entry), findBody(entry)];
  const isTyped = language === 'TypeScript';
  const types = isTyped ? [answer, sent].map(declareType).join('') : '';
  const typed = (/** @type {Schema | undefined} */ schema) =>
    isTyped && schema ? `: ${writeType(schema)}` : '';
  const token = isPublic ? '' : '\n    Authorization: `Bearer ${token}`,';
  const kind = body && "\n    'Content-Type': 'application/json',";
  return `${types}${body && `const body${typed(sent)} = ${body};\n`}const response = await fetch(
  '${url.replaceAll("'", '%27')}',
  {
    method: '${method}',
    headers: {${`${token}${kind}`.replaceAll('\n', '\n  ')}
    },${body && '\n    body: JSON.stringify(body),'}
  },
);
if (!response.ok) throw new Error((await response.json()).detail);${
    answer ? `\nconst data${typed(answer)} = await response.json();` : ''
  }`;
}

/** @param {Schema} schema @returns {string} */
function writeType(schema) {
  const { $ref, items, type = 'unknown', enum: values, properties, required = [] } = schema;
  if ($ref) return resolved(schema).name ?? '';
  if (values) return values.map((each) => JSON.stringify(each)).join(' | ');
  if (items) return `Array<${writeType(items)}>`;
  if (properties) {
    const members = Object.entries(properties).map(
      ([name, each]) => `${name}${required.includes(name) ? '' : '?'}: ${writeType(each)}`,
    );
    return `{ ${members.join('; ')} }`;
  }
  return [type]
    .flat()
    .join(' | ')
    .replace('integer', 'number')
    .replace('object', 'Record<string, unknown>');
}

/** @param {Schema} [schema] @returns {string} */
function declareType({ items, ...schema } = {}) {
  if (items) return declareType(items);
  const { name, $ref, ...shape } = resolved(schema);
  const lines = writeType(shape)
    .replaceAll(/(?<=^\{|;) /gu, '\n  ')
    .replace(/ \}$/u, ';\n}');
  return name ? `type ${name} = ${lines};\n` : '';
}

/** Sends the sample request, after a confirmation if it writes. @param {Entry} entry */
async function run(entry) {
  const { method, body, url } = buildRequest(entry);
  if (method !== 'GET' && !(await ask('run', `${method} ${url}`))) return;
  const began = performance.now();
  const headers = {
    'Content-Type': 'application/json',
    ...(state.me?.id && { 'Session-User': `${state.me.id}` }),
  };
  const response = await fetch(url, { method, headers, body: body || null }).catch(() => {
    throw new Problem('The server did not answer. Check your network.');
  });
  let text = await response.text();
  const ms = Math.round(performance.now() - began);
  const type = response.headers.get('Content-Type') ?? '';
  if (type.includes('json') && text.length < answerMax)
    text = JSON.stringify(JSON.parse(text), null, 2);
  const etag = response.headers.get('ETag');
  entry.answer = {
    status: `${response.status} ${response.statusText}`,
    facts: ` · ${ms} ms${etag ? ` · entity tag ${etag}` : ''}`,
    text: text.slice(0, answerMax),
  };
}

/** @param {Schema} schema @returns {string} */
function describeRules(schema) {
  const { name, type, enum: values, format, items, minimum, maximum, ...rules } = resolved(schema);
  const { minLength, maxLength, maxItems, 'x-references': target, 'x-default': initial } = rules;
  return [
    name ?? values?.join(' | ') ?? [type ?? 'any JSON'].flat().join(' or '),
    items && `of ${describeRules(items)}`,
    format,
    target && `id in ${target}`,
    minimum !== undefined && `from ${minimum}`,
    maximum !== undefined && `to ${maximum}`,
    (minLength || maxLength) && `${minLength ?? 0} to ${maxLength ?? 'any number of'} characters`,
    maxItems && `at most ${maxItems}`,
    initial !== undefined && `${initial} by default`,
  ]
    .filter(Boolean)
    .join(', ');
}

/**
 * @type {(title: string, rows: readonly (readonly [name: string, rules: string, more?: string | undefined])[]) =>
 *   Child}
 */
const drawTable = (title, rows) =>
  rows.length > 0 &&
  h(
    'details.scroll',
    { key: title },
    h('summary', `${title} `, h('small', rows.length)),
    table(
      [],
      rows.map(([name, ...texts]) => [h('code', name), ...texts.map(prose)]),
    ),
  );

/** @type {(title: string, schema?: Schema) => Child} */
function drawFields(title, schema) {
  const { items, ...own } = resolved(schema ?? {});
  const { properties = {}, required = [] } = items ? resolved(items) : own;
  return drawTable(
    title,
    Object.entries(properties).map(([name, each]) => [
      name,
      describeRules(each),
      [
        required.includes(name) ? 'required' : 'optional',
        each.readOnly && 'made by the server',
        each.description,
      ]
        .filter(Boolean)
        .join('. '),
    ]),
  );
}

/** Shows a text, with code between backticks. @param {string} [text] */
const prose = (text = '') =>
  h(
    'span',
    text.split('`').map((each, index) => (index % 2 === 1 ? h('code', each) : each)),
  );

/** @param {Entry} entry */
function bodyView(entry) {
  const { path, method, answer, responses, parameters = [], operationId, tag } = entry;
  const request = buildRequest(entry);
  const input = (/** @type {'target' | 'body'} */ name, selector = 'input') =>
    h(
      'label.stack tight',
      { key: name },
      capitalized(name),
      h(selector, {
        value: request[name],
        oninput: (event) => (entry[name] = readInput(event)),
        spellcheck: 'false',
        autocomplete: 'off',
      }),
    );
  const mayRun = !credentials.test(path) && !responses?.[200]?.content?.['text/event-stream'];
  const sample = writeSample(entry);
  return h(
    'div.stack',
    h('p', h('a', { href: address('', `api/${tag}/${operationId}`, route.query) }, 'Link to this')),
    h(
      'div.run stack',
      h(
        'div.stack tight',
        h(
          'div.row',
          languages.map((each) =>
            button(each, () => (storage['language'] = language = each), {
              'aria-pressed': `${each === language}`,
            }),
          ),
          button('Copy', () => copy(sample), {
            'aria-label': 'Copy the sample',
          }),
        ),
        h('pre.card pad scroll', { tabindex: 0 }, h('code', sample)),
        input('target'),
        findBody(entry) && input('body', 'textarea.code'),
        mayRun && button(method === 'GET' ? 'Run' : 'Run…', () => run(entry), { class: 'primary' }),
      ),
      h(
        'div.stack tight',
        { role: 'status' },
        answer && h('p', h('strong', answer.status), answer.facts),
        answer?.text
          ? h('pre.card pad scroll', { tabindex: 0 }, h('code', bdi(answer.text)))
          : mayRun && !answer && h('p.quiet', 'The answer appears here.'),
      ),
    ),
    drawFields('Fields of the body', findBody(entry)),
    drawFields('Fields of the answer', findAnswer(entry)),
    drawTable(
      'Parameters',
      parameters.map((each) => [each.name, describeRules(each.schema), each.description]),
    ),
  );
}

/** @type {{ [word: string]: string }} */
const people = {
  public: 'everyone',
  optional: 'everyone',
  user: 'everyone signed in',
  session: 'everyone signed in',
  self: 'the user',
  owner: 'the owner',
  member: 'members',
  admin: 'administrators',
};

/** @param {Operation} operation */
function audience({ 'x-access': access = '' }) {
  const all = access.split(' or ').map((word) => people[word] ?? word);
  const isForAll = all.some((each) => each.startsWith('everyone'));
  return `For ${[...new Set(isForAll ? all : [...all, 'administrators'])].join(', ')}.`;
}

/** @param {Entry} entry */
function entryView(entry) {
  const { method, path, operationId: id, summary, isOpen } = entry;
  const ontoggle = (/** @type {Event} */ { target }) => {
    if (target instanceof HTMLDetailsElement) entry.isOpen = target.open;
  };
  return h(
    'details.operation card pad',
    { key: id, id, open: isOpen, ontoggle },
    h(
      'summary.row',
      h('code.pill', method),
      h('code', path),
      h('span.grow', summary),
      h('span.quiet', audience(entry)),
    ),
    isOpen && bodyView(entry),
  );
}

/** Expands the operation in the address. */
export function open() {
  const { operation } = route;
  draw(operation && `#${CSS.escape(operation)} summary`);
}

export function view() {
  const { of = '', query } = route;
  // Collections that the person may not list come last.
  const isShut = (/** @type {Entry} */ { tag }) => {
    const collection = findCollection(tag);
    return Number(!!collection && !allows(collection, 'list'));
  };
  const all = entries().toSorted((one, other) => isShut(one) - isShut(other));
  const collection = findCollection(of);
  return ownView(
    of ? `${capitalized(of)}: API` : 'Documentation',
    [collection && h('a.quiet grow', { href: address(of, '', query) }, 'Records')],
    h(
      'nav.row',
      { 'aria-label': 'Parts of the API' },
      ['', ...new Set(all.map(({ tag }) => tag))].map((tag) =>
        h(
          'a.chip',
          {
            href: address('', tag ? `api/${tag}` : 'api'),
            'aria-current': tag === of && 'page',
          },
          tag ? capitalized(tag) : 'All',
        ),
      ),
      h('a', { href: 'openapi.json', target: '_blank' }, 'openapi.json'),
    ),
    !of && h('p', prose(state.description?.info.description)),
    all.filter(({ tag }) => !of || tag === of).map(entryView),
  );
}
