// Elements, keyed lists and signals: what replaces a framework.
// Text reaches the page only as text nodes. Characters that a reader cannot see are shown as boxes.
import { hidden } from './text.js';

/** @typedef {Node | string | number | false | null | undefined} Leaf */
/** @typedef {Leaf | Leaf[] | Leaf[][] | Leaf[][][]} Child */

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'path', 'rect', 'line', 'circle', 'polyline', 'g', 'title', 'text']);
/** Attributes that `h` sets. Others are refused: a new one is a decision. */
const ATTRIBUTES = new Set(`alt autocomplete class colspan d download for height id inputmode list max maxlength min name placeholder
  points preserveAspectRatio role rows rx r cx cy scope spellcheck step tabindex title type viewBox width x x1 x2 y y1 y2`.split(/\s+/));
const PROPERTIES = new Set(['checked', 'disabled', 'hidden', 'open', 'readOnly', 'selected', 'value']);

/**
 * Makes an element. `href` must be a place on this page, `src` an image as data.
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...Child} children
 * @returns {any}
 */
export function h(tag, props, ...children) {
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  append(node, children);
  for (const [name, value] of Object.entries(props ?? {})) set(node, name, value);
  return node;
}

/** @param {any} node @param {string} name @param {any} value */
export function set(node, name, value) {
  if (name === 'on') {
    for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
  } else if (PROPERTIES.has(name)) {
    if (node[name] !== value) node[name] = value;
  } else if (name === 'href') {
    if (!/^(#|blob:)/.test(value)) throw new TypeError(`not a place on this page: ${value}`);
    node.setAttribute('href', value);
  } else if (name === 'src') {
    if (!/^data:image\/(png|jpeg|gif|webp|avif|bmp);base64,/.test(value)) throw new TypeError('not an image as data');
    node.setAttribute('src', value);
  } else if (ATTRIBUTES.has(name) || /^(aria|data)-[a-z-]+$/.test(name)) {
    if (value === false || value === null || value === undefined) node.removeAttribute(name);
    else node.setAttribute(name, name === 'title' || name === 'aria-label' ? hidden.inline(String(value)) : String(value));
  } else {
    throw new TypeError(`unknown attribute ${name}`);
  }
}

/** @param {Element | DocumentFragment} node @param {Child[]} children */
function append(node, children) {
  for (const child of children.flat(3)) {
    if (child === false || child === null || child === undefined || child === '') continue;
    if (child instanceof Node) node.append(child);
    else node.append(...textNodes(String(child)));
  }
}

/** The nodes of a text: hidden characters become boxes. @param {string} text @returns {Node[]} */
export function textNodes(text) {
  if (!hidden.test(text)) return [document.createTextNode(text)];
  return hidden.split(text).map((part) => typeof part === 'string' ? document.createTextNode(part)
    : h('span', { class: 'boxed', title: part.name }, part.shown));
}

/** Replaces what is inside a node. @param {Element} node @param {...Child} children */
export function fill(node, ...children) {
  const fragment = document.createDocumentFragment();
  append(fragment, children);
  node.replaceChildren(fragment);
}

/** Sets the text of a node, and touches nothing if it is the same. @param {Element} node @param {string} text */
export function setText(node, text) {
  if (node.getAttribute('data-text') === text) return;
  node.setAttribute('data-text', text);
  node.replaceChildren(...textNodes(text));
}

/**
 * Keeps the rows of a list by key, so that focus, selection and scroll stay where they are.
 * @template T
 * @param {Element} parent @param {T[]} items @param {(item: T) => string} key
 * @param {(item: T) => { node: Element, update?: (item: T) => void }} row
 */
export function keyed(parent, items, key, row) {
  const known = /** @type {Map<string, any>} */ (/** @type {any} */ (parent).rowsByKey ?? new Map());
  const next = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let entry = next.has(name) ? null : known.get(name);
    if (entry) entry.update?.(item);
    else entry = row(item);
    next.set(name, entry);
    if (place && entry.node === place) place = place.nextElementSibling;
    else parent.insertBefore(entry.node, place);
  }
  for (const [name, entry] of known) if (next.get(name) !== entry) entry.node.remove();
  /** @type {any} */ (parent).rowsByKey = next;
}

/** A value with listeners. @template T @param {T} initial */
export function signal(initial) {
  let value = initial;
  /** @type {Set<(value: T) => void>} */
  const listeners = new Set();
  return {
    get: () => value,
    /** @param {T} next */
    set(next) { value = next; for (const listener of listeners) listener(next); },
    /** @param {(value: T) => void} listener @param {AbortSignal} until */
    watch(listener, until) {
      listeners.add(listener);
      until.addEventListener('abort', () => listeners.delete(listener));
      listener(value);
    },
  };
}
