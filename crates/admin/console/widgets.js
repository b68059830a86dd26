// Parts that several pages use.
import { h, fill, setText } from './dom.js';
import { dateTime, ago, hidden } from './text.js';

/** The shape of each state: a state is a word and a shape, never a colour alone. */
const STATES = new Map(Object.entries({
  ready: ['good', '●'], starting: ['busy', '◔'], waiting: ['idle', '○'], backoff: ['warn', '◐'], open: ['warn', '◐'], dead: ['bad', '✕'],
  success: ['good', '●'], tool_error: ['warn', '▲'], fault: ['bad', '✕'], input_required: ['busy', '◇'], task: ['busy', '◇'],
  cancelled: ['idle', '○'], active: ['busy', '◔'], ended: ['idle', '○'], working: ['busy', '◔'], completed: ['good', '●'], failed: ['bad', '✕'],
  approved: ['good', '●'], withheld: ['warn', '◐'], new: ['busy', '◇'], rejected: ['bad', '✕'], listed: ['good', '●'], excluded: ['bad', '✕'],
  ok: ['good', '●'], asked: ['busy', '◇'], detached: ['busy', '◇'], started: ['busy', '◔'], error: ['bad', '✕'], warning: ['warn', '▲'], warn: ['warn', '▲'], info: ['busy', '◇'], debug: ['idle', '○'], trace: ['idle', '·'], running: ['good', '●'], draining: ['warn', '◐'],
  same: ['good', '●'], translated: ['busy', '◇'], degraded: ['warn', '◐'], refused: ['bad', '✕'], allowed: ['good', '●'], denied: ['bad', '✕'],
}));

/** @param {string} word @param {string} [shown] */
export function state(word, shown) {
  const [tone, shape] = STATES.get(word) ?? ['idle', '○'];
  return h('span', { class: `state ${tone}` }, h('span', { class: 'shape', 'aria-hidden': 'true' }, shape), shown ?? word.replaceAll('_', ' '));
}

export const logo = () => h('svg', { viewBox: '0 0 32 32', 'aria-hidden': 'true' }, h('rect', { width: 32, height: 32, rx: 8 }),
  h('path', { d: 'M21.5 11.2a7 7 0 1 0 0 9.6' }), h('circle', { cx: 23, cy: 16, r: 2.3 }));

/** A message in which `quoted` words are code. @param {string} text */
export const message = (text) => text.split('`').length % 2 === 1 ? text.split('`').map((part, index) => index % 2 === 1 ? h('code', null, part) : part) : [text];

/** Sets a message, and touches nothing if it is the same. @param {Element} node @param {string} text */
export function setMessage(node, text) {
  if (node.getAttribute('data-message') === text) return;
  node.setAttribute('data-message', text);
  fill(node, message(text));
}

/** @param {string} text @param {string} [tone] */
export const tag = (text, tone = '') => h('span', { class: `tag ${tone}` }, text);

/** @param {string | undefined} time */
export const moment = (time) => h('span', { class: 'nowrap', title: dateTime(time) }, ago(time));

/**
 * The head of a page.
 * @param {import('./dom.js').Child} title @param {{ above?: import('./dom.js').Child, beside?: import('./dom.js').Child, actions?: import('./dom.js').Child, lead?: import('./dom.js').Child }} [parts]
 */
export const heading = (title, { above, beside, actions, lead } = {}) => h('div', { class: 'page-head' },
  h('div', { class: 'page-title' }, above && h('p', { class: 'above' }, above), h('div', { class: 'title-line' }, h('h1', { tabindex: '-1' }, title), beside), lead && h('p', { class: 'lead' }, lead)),
  actions && h('div', { class: 'actions' }, actions));

/** @param {string} title @param {...import('./dom.js').Child} children */
export function section(title, ...children) {
  const id = `s-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
}

/** @param {string} title @param {string} text @param {...import('./dom.js').Child} actions */
export const empty = (title, text, ...actions) => h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, title), h('p', null, text), actions.length > 0 && h('div', { class: 'actions' }, ...actions));

/** What failed, and what to do. @param {any} error @param {(() => void) | null} [again] */
export function failure(error, again) {
  const remedies = {
    unreachable: 'Check that the process runs and that this page can reach it. The page tries again by itself.',
    forbidden: 'Sign in as a user with this role, or ask who runs this server.',
    'not-found': 'It may have ended or been removed since the page was opened.',
    'too-many-streams': 'Close another tab with a live view.',
    throttled: 'Wait a little, then try again.',
  };
  const remedy = /** @type {any} */ (remedies)[error.code];
  return h('div', { class: 'notice bad', role: 'alert' }, h('p', { class: 'notice-title' }, message(error.message ?? String(error))),
    error.detail && h('p', null, message(error.detail)), remedy && h('p', null, remedy),
    again && h('div', { class: 'actions' }, button('Try again', again)));
}

/** @param {import('./dom.js').Child} label @param {(event: Event) => void} click @param {Record<string, any>} [props] */
export const button = (label, click, props = {}) => h('button', { type: 'button', on: { click }, ...props }, label);

/** @param {import('./dom.js').Child} label @param {string} href @param {Record<string, any>} [props] */
export const link = (label, href, props = {}) => h('a', { href, ...props }, label);

/** The address of a page. @param {string[]} path @param {Record<string, string | undefined>} [query] */
export function address(path, query = {}) {
  const search = new URLSearchParams(Object.entries(query).filter((entry) => entry[1]).map(([name, value]) => [name, String(value)]));
  return `#/${path.map(encodeURIComponent).join('/')}${search.size ? `?${search}` : ''}`;
}

/** @param {() => string} text @param {string} [label] */
export function copyButton(text, label = 'Copy') {
  const it = button(label, async () => {
    try {
      await navigator.clipboard.writeText(text());
      setText(it, 'Copied');
      say('Copied');
    } catch {
      setText(it, 'Select and copy the text by hand');
    }
    setTimeout(() => setText(it, label), 2000);
  }, { class: 'small' });
  return it;
}

/**
 * A table that becomes a list of cards on narrow screens.
 * @param {string} label @param {(string | [string, string])[]} columns each a label, or a label and a class
 */
export function table(label, columns) {
  const body = h('tbody', { role: 'rowgroup' });
  const heads = columns.map((column) => typeof column === 'string' ? [column, ''] : column);
  const node = h('table', { role: 'table', 'aria-label': label },
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, heads.map(([text, kind]) => h('th', { scope: 'col', role: 'columnheader', class: kind }, text || h('span', { class: 'unseen' }, 'Actions'))))), body);
  /** @param {import('./dom.js').Child[]} cells @param {Record<string, any>} [props] */
  const row = (cells, props = {}) => h('tr', { role: 'row', ...props }, cells.map((cell, index) => h('td', { role: 'cell', class: heads[index][1], 'data-label': heads[index][0] }, cell)));
  return { node: h('div', { class: 'table' }, node), body, row };
}

/** @param {[string, import('./dom.js').Child][]} rows */
export const facts = (rows) => h('dl', { class: 'facts' }, rows.filter(([, value]) => value !== undefined && value !== null && value !== false && value !== '')
  .map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));

/** Tabs as links: the place is in the address. @param {string} label @param {{ name: string, href: string, current: boolean }[]} items */
export const tabs = (label, items) => h('nav', { class: 'tabs', 'aria-label': label }, items.map(({ name, href, current }) => link(name, href, { 'aria-current': current ? 'page' : false })));

/** @param {string} label @param {any} control @param {string} [hint] */
export const labelled = (label, control, hint) => h('label', { class: 'labelled' }, h('span', null, label), control, hint && h('small', null, hint));

/** @param {[string, string][]} options @param {string} value @param {(value: string) => void} change @param {Record<string, any>} [props] */
export const select = (options, value, change, props = {}) => h('select', { on: { change: (event) => change(event.target.value) }, value, ...props },
  options.map(([name, text]) => h('option', { value: name, selected: name === value }, hidden.inline(text))));

/**
 * Asks before something happens. Resolves to whether it was confirmed.
 * @param {string} title @param {import('./dom.js').Child} text @param {string} action @param {string} [typed] a word that must be typed
 * @returns {Promise<boolean>}
 */
export function ask(title, text, action, typed) {
  return new Promise((resolve) => {
    const field = typed === undefined ? null : h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', on: { input: () => { confirm.disabled = field.value !== typed; } } });
    const confirm = h('button', { type: 'submit', class: 'primary', disabled: typed !== undefined }, action);
    const form = h('form', { on: { submit: (event) => { event.preventDefault(); dialog.close('yes'); } } },
      h('h2', { id: 'ask-title' }, title), h('p', null, text), field && labelled('Type its name to confirm', field),
      h('div', { class: 'actions' }, button('Cancel', () => dialog.close('no')), confirm));
    const dialog = h('dialog', { 'aria-labelledby': 'ask-title', on: { close: () => { dialog.remove(); resolve(dialog.returnValue === 'yes'); } } }, form);
    document.body.append(dialog);
    dialog.showModal();
    if (field) field.focus();
  });
}

const announcer = h('p', { class: 'unseen', role: 'status', 'aria-live': 'polite' });
let saidAt = 0;
let waiting = 0;
/** Says something to a screen reader, at most once in five seconds. @param {string} text */
export function say(text) {
  if (!announcer.isConnected) document.body.append(announcer);
  clearTimeout(waiting);
  const pause = Math.max(0, saidAt + 5000 - Date.now());
  waiting = window.setTimeout(() => { saidAt = Date.now(); announcer.textContent = hidden.inline(text); }, pause);
}

/** A file of the browser. @param {string} name @param {BlobPart[]} parts @param {string} type */
export function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A place that shows data, or why there is none. @param {string} [busy] */
export function loading(busy = 'Loading…') {
  const node = h('div', { class: 'loading' }, h('p', { class: 'muted late' }, busy));
  const trouble = h('div', null);
  let isShown = false;
  return {
    node: h('div', null, trouble, node),
    /** Shows what this makes. It is made once: later data changes it in place. @param {() => import('./dom.js').Child} make */
    show(make) {
      fill(trouble);
      if (isShown) return;
      isShown = true;
      node.className = '';
      fill(node, make());
    },
    /** @param {any} error @param {() => void} [again] */
    fail(error, again) { fill(trouble, failure(error, again)); if (!isShown) fill(node); },
  };
}
