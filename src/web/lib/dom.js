// @ts-check
/**
 * Draws the DOM from plain descriptions. `h` describes an element, `render` updates an element's
 * children, and `set` changes an element of index.html. Only differences are applied, so that
 * focus, selection, scroll position and unsaved input survive. Descriptions drawn before are
 * skipped. Text is never parsed as markup.
 */

/** @import { Attributes, Child, Description, Handler } from '../types.js' */

/**
 * Set by `app.js`: `run` runs event handlers, draws afterwards and reports failures; `paint` draws
 * everything.
 */
export const events = {
  run: async (/** @type {() => unknown} */ work) => void (await work()),
  paint() {},
};

/** Controls whose last press is at work, so that a double click does not do the same twice. */
let busy = new WeakSet();

/**
 * Separates optional attributes from children.
 * @param {(Attributes | Child | readonly Child[])[]} parts
 */
function sorted(parts) {
  /** @type {Attributes} */ const attributes = {};
  const children = parts.flat().filter(
    /** @returns {each is Child} */ (each) => {
      const isChild = typeof each !== 'object' || 'tag' in each;
      if (!isChild) Object.assign(attributes, each);
      return isChild;
    },
  );
  return { attributes, children };
}

/**
 * Describes an element: `h('p.quiet', { id: 'range' }, 'Text')`.
 * @type {(selector: string, ...parts: (Attributes | Child | readonly Child[])[]) => Description}
 */
export function h(selector, ...parts) {
  const [tag = '', classes] = selector.split('.');
  return { tag, ...sorted([{ class: classes }, ...parts]) };
}

/** @type {(label: Child, onclick: Handler, attributes?: Attributes) => Description} */
export const button = (label, onclick, attributes = {}) =>
  h('button', { type: 'button', onclick, ...attributes }, label);

/** @type {WeakMap<Node, Description>} */ const descriptions = new WeakMap();
/** The key of each node, or its position without one. @type {WeakMap<Node, unknown>} */ const keys =
  new WeakMap();

/** @type {(parent: Element, children: readonly Child[]) => void} */
function render(parent, children) {
  const former = new Map(Array.from(parent.childNodes, (node) => [keys.get(node), node]));
  const nodes = children.flatMap((child, index) => {
    if (typeof child === 'boolean' || child === undefined) return [];
    const key = Object(child).attributes?.key ?? index;
    const node = drawNode(child, parent, former.get(key));
    if (node === former.get(key)) former.delete(key);
    keys.set(node, key);
    return node;
  });
  // Removes stale nodes first, so that the others stay in place: moving a node would take its
  // focus.
  for (const node of former.values()) node.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/**
 * Returns the node for a description, reusing the previous one if it has the same tag.
 * @type {(child: Description | string | number, parent: Element, former?: Node) => Node}
 */
function drawNode(child, parent, former) {
  if (typeof child !== 'object') {
    const text = former instanceof Text ? former : new Text();
    if (text.data !== `${child}`) text.data = `${child}`;
    return text;
  }
  const known = former && descriptions.get(former);
  if (former && known === child) return former;
  const isKept = former instanceof Element && known?.tag === child.tag;
  const element = isKept
    ? former
    : document.createElementNS(
        child.tag === 'svg' ? 'http://www.w3.org/2000/svg' : parent.namespaceURI,
        child.tag,
      );
  descriptions.set(element, child);
  // Children come first, because a select has no value without options.
  render(element, child.children);
  update(element, child.attributes, isKept ? known.attributes : {});
  return element;
}

/** @type {(element: Element, attributes: Attributes, before: Attributes) => void} */
function update(element, attributes, before) {
  for (const name of Object.keys({ ...before, ...attributes })) {
    const value = attributes[name];
    // People change these in the element itself, so they are compared there.
    const isLive = name === 'value' || name === 'checked';
    if (typeof value === 'function') {
      Reflect.set(element, name, (/** @type {Event} */ event) => {
        const isAgain = busy.has(element);
        // No form of the page is sent by the browser.
        if (isAgain || name === 'onsubmit') event.preventDefault();
        if (isAgain) return undefined;
        if (element.matches('button, form, [role=switch]')) busy.add(element);
        return events.run(() => value(event)).finally(() => busy.delete(element));
      });
    } else if (isLive ? Reflect.get(element, name) === value : before[name] === value) continue;
    else if (isLive) Reflect.set(element, name, value);
    else if (value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? '' : `${value}`);
  }
}

/**
 * @type {<E extends HTMLElement>(id: string, kind: new () => E) => E}
 */
export function part(id, kind) {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`Cannot find #${id}: it is not in index.html`);
}

/** @type {Set<Element>} */ const filled = new Set();

/** Undoes all drawing and input. */
export function reset() {
  busy = new WeakSet();
  for (const element of filled) render(element, []);
  for (const form of document.forms) form.reset();
}

/**
 * Sets attributes and children of an element of index.html. Without children, it keeps its own.
 * @type {(id: string, ...parts: (Attributes | Child | readonly Child[])[]) => void}
 */
export function set(id, ...parts) {
  const { attributes, children } = sorted(parts);
  const element = part(id, HTMLElement);
  if (children.length > 0) {
    filled.add(element);
    render(element, children);
  }
  update(element, attributes, {});
}

/** @type {(id: string, onclick: Handler) => void} */
export const onClick = (id, onclick) => set(id, { onclick });

/** Returns what a control contains. @type {(event: Event) => string} */
export const readInput = ({ target }) => Object(target).value;

/** @param {string} text */
export const bdi = (text) => h('bdi', text);

/**
 * Describes something removable, as `title` says.
 * @type {(key: string, title: string, remove: Handler, ...content: Child[]) => Description}
 */
export const chip = (key, title, remove, ...content) =>
  h('span.chip row', { key }, content, button('×', remove, { 'aria-label': title }));

let isDue = false;
/** @type {string | undefined} */ let wanted;

/**
 * Runs a function with the next frame, or soon in a hidden tab, which has no frames.
 * @param {() => void} work
 */
export const inNextFrame = (work) =>
  void (document.hidden ? setTimeout(work) : requestAnimationFrame(work));

/**
 * Draws the state with the next frame, then focuses an element.
 * @param {string} [focus] a selector
 */
export function draw(focus) {
  wanted = focus ?? wanted;
  if (isDue) return;
  isDue = true;
  inNextFrame(() => {
    isDue = false;
    events.paint();
    const target = wanted && document.querySelector(wanted);
    if (!(target instanceof HTMLElement)) return;
    target.closest('details')?.setAttribute('open', '');
    target.focus();
    wanted = undefined;
  });
}
