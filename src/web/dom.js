// @ts-check
/**
 * The DOM, drawn from plain descriptions. `h` describes an element; `render` makes a parent's children what is
 * described, and `set` changes an element of index.html. Only what differs is changed, so that the focus, the
 * selection, the scroll position and unsaved input stay where they are. Text is never markup.
 */

/** @import { Attributes, Child, Description, Handler } from './types.js' */

/** Runs the handlers of events; `app.js` gives one that draws afterwards and tells of failures. */
export const events = { run: (/** @type {() => unknown} */ work) => work() };

/** Attributes, which may be left out, and children. @param {(Attributes | Child | readonly Child[])[]} parts */
function sorted(parts) {
  /** @type {Attributes} */ const attributes = {};
  const children = parts.flat().filter(/** @returns {each is Child} */ (each) => {
    const isChild = typeof each !== 'object' || 'tag' in each;
    if (!isChild) Object.assign(attributes, each);
    return isChild;
  });
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

/** What each element was drawn from. @type {WeakMap<Node, Description>} */ const descriptions = new WeakMap();
/** The key of each node, or else its position. @type {WeakMap<Node, unknown>} */ const keys = new WeakMap();

/** Makes the children of `parent` what is described. @type {(parent: Element, children: readonly Child[]) => void} */
export function render(parent, children) {
  const former = new Map(Array.from(parent.childNodes, (node) => [keys.get(node), node]));
  const nodes = children.flatMap((child, index) => {
    if (typeof child === 'boolean' || child === undefined) return [];
    const key = (typeof child === 'object' ? child.attributes['key'] : undefined) ?? index;
    const node = draw(child, former.get(key));
    if (node === former.get(key)) former.delete(key);
    keys.set(node, key);
    return node;
  });
  // These go first, so that those that stay need not be moved: that would take their focus.
  for (const node of former.values()) node.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/**
 * The node for a description: the former one where it fits.
 * @type {(child: Description | string | number, former?: Node) => Node}
 */
function draw(child, former) {
  if (typeof child !== 'object') {
    const text = former instanceof Text ? former : new Text();
    if (text.data !== `${child}`) text.data = `${child}`;
    return text;
  }
  const known = former && descriptions.get(former);
  const isKept = former instanceof HTMLElement && known?.tag === child.tag;
  const element = isKept ? former : document.createElement(child.tag);
  descriptions.set(element, child);
  update(element, child.attributes, child.children, isKept ? known.attributes : {});
  return element;
}

/**
 * @type {(element: HTMLElement, attributes: Attributes, children: readonly Child[] | undefined,
 *   before: Attributes) => void}
 */
function update(element, attributes, children, before) {
  // First the children: a select has no value before it has its options.
  if (children) render(element, children);
  for (const name of Object.keys({ ...before, ...attributes })) {
    const value = attributes[name];
    // What a person changes, the element itself knows best.
    const isLive = name === 'value' || name === 'checked';
    if (typeof value === 'function') {
      Reflect.set(element, name, (/** @type {Event} */ event) => events.run(() => value(event)));
    } else if (isLive ? Reflect.get(element, name) === value : before[name] === value) continue;
    else if (isLive) Reflect.set(element, name, value);
    else if (value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? '' : `${value}`);
  }
}

/** An element of index.html. @type {<E extends HTMLElement>(id: string, kind: new () => E) => E} */
export function part(id, kind) {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`Cannot find #${id}: it is not in index.html`);
}

/**
 * Gives an element of index.html attributes and children; without children, it keeps its own.
 * @type {(id: string, ...parts: (Attributes | Child | readonly Child[])[]) => void}
 */
export function set(id, ...parts) {
  const { attributes, children } = sorted(parts);
  update(part(id, HTMLElement), attributes, children.length > 0 ? children : undefined, {});
}

/** @type {(id: string, onclick: Handler) => void} */
export const onClick = (id, onclick) => set(id, { onclick });

/** What stands in the control that an event is about. @param {Event} event */
export const inputOf = ({ target: at }) =>
  at instanceof HTMLInputElement || at instanceof HTMLSelectElement ? at.value : '';

/** A text of any script, kept apart from what stands beside it, that may break where long words have punctuation. */
export const bdi = (/** @type {string} */ text) => h('bdi', text.split(/(?<=[@._/-])/u)
  .flatMap((piece, index) => (index === 0 ? [piece] : [h('wbr'), piece])));

/** Something with its name, in a list of such. @type {(name: string, value: string) => Description} */
export const fact = (name, value) => h('div', h('dt', name), h('dd', bdi(value || '–')));
