// Start of the console: sign-in, the frame of the page, the address and the keyboard.
import { h, fill, signal } from './dom.js';
import * as api from './api.js';
import { hidden } from './text.js';
import { button, link, logo, state, failure, say } from './widgets.js';
import { signInPage } from './pages/sign_in.js';

/** @typedef {{ path: string[], query: URLSearchParams, until: AbortSignal, self: any, may: (role: string) => boolean, setQuery: (query: Record<string, string>) => void, setTitle: (title: string) => void }} Context */

const PLACES = [
  ['overview', 'Overview', 'o'], ['upstreams', 'Upstreams', 'u'], ['tools', 'Tools', 't'], ['calls', 'Calls', 'c'],
  ['sessions', 'Sessions', 's'], ['approvals', 'Approvals', 'a'], ['audit', 'Audit', 'd'], ['log', 'Log', 'l'], ['config', 'Config', 'f'],
];
/** Pages of one thing: the place, and the module when the address has a second part. */
const DETAILS = /** @type {Record<string, string>} */ ({ upstreams: 'upstream', tools: 'tool', calls: 'call', approvals: 'approval' });
const PLACE_OF = /** @type {Record<string, string>} */ ({ try: 'tools', denials: 'audit' });

const withheld = signal(0);
/** @type {AbortController} */
let visit = new AbortController();
/** @type {any} */
let self = null;

const main = h('main', { id: 'main', tabindex: '-1' });

function frame() {
  const until = new AbortController();
  api.whenSignedOut((problem) => { until.abort(); showSignIn(problem); });
  const badge = h('span', { class: 'badge', hidden: true });
  const status = h('span', null);
  const places = h('nav', { class: 'places', 'aria-label': 'Pages' }, PLACES.map(([place, name]) => link([name, place === 'approvals' && badge], `#/${place}`, { 'data-place': place })));
  withheld.watch((number) => { fill(badge, String(number), h('span', { class: 'unseen' }, ' wait for approval')); badge.hidden = number === 0; }, until.signal);
  const draw = (next) => {
    self = next;
    fill(status, next.config?.refused ? link(state('warning', 'config refused'), '#/config') : state(next.stage ?? 'running'));
  };
  api.poll('/self', 10_000, until.signal, draw, (error) => fill(status, state('dead', error.code === 'unreachable' ? 'no answer' : error.message)));
  api.poll('/pins', 15_000, until.signal, (pins) => withheld.set(pins.items.filter((pin) => pin.state === 'withheld').length), () => {});
  const account = h('details', { class: 'menu' }, h('summary', null, self.name),
    h('div', null, h('p', { class: 'muted' }, self.roles.length ? `Roles: ${self.roles.join(', ')}` : 'No roles'),
      h('p', { class: 'muted' }, `${self.product.name} ${self.product.version}, process ${self.pid}, replica ${self.replica.slice(0, 8)}`),
      h('div', { class: 'actions' }, button('Keyboard', showHelp), button('Sign out', () => api.signOut()))));
  fill(document.body, link('Skip to the content', '#main', { class: 'skip', on: { click: (event) => { event.preventDefault(); main.focus(); } } }),
    h('header', { class: 'top' },
      h('div', { class: 'bar' }, link([logo(), 'Creole'], '#/overview', { class: 'brand' }), h('span', { class: 'where' }, self.server), h('span', { class: 'spring' }), status, account), places),
    main);
  document.addEventListener('click', (event) => { if (account.open && !account.contains(event.target)) account.open = false; }, { signal: until.signal });
}

async function show() {
  if (!api.isSignedIn() || self === null) return;
  visit.abort();
  visit = new AbortController();
  const until = visit.signal;
  const address = location.hash;
  const [route, search = ''] = address.replace(/^#\/?/, '').split('?');
  const parts = route.split('/').filter(Boolean).map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  const [first = 'overview', ...path] = parts;
  const name = path.length > 0 && DETAILS[first] || first;
  const known = PLACES.some(([place]) => place === first) || first in PLACE_OF;
  for (const entry of document.querySelectorAll('.places a')) {
    const isCurrent = entry.getAttribute('data-place') === (PLACE_OF[first] ?? first);
    if (isCurrent) { entry.setAttribute('aria-current', 'page'); entry.scrollIntoView({ block: 'nearest', inline: 'nearest' }); } else entry.removeAttribute('aria-current');
  }
  /** @type {Context} */
  const context = {
    path, query: new URLSearchParams(search), until, self,
    may: (role) => self.roles.includes(`admin:${role}`),
    setQuery: (query) => {
      const next = new URLSearchParams(Object.entries(query).filter((entry) => entry[1] !== ''));
      history.replaceState(null, '', `#/${route}${next.size ? `?${next}` : ''}`);
    },
    setTitle: (title) => { document.title = `${hidden.inline(title)} – Creole`; },
  };
  try {
    if (!known) throw Object.assign(new Error(`There is no page ${first}`), { detail: 'Choose one above.' });
    const module = await import(`./pages/${name}.js`);
    if (until.aborted) return;
    context.setTitle(module.title);
    fill(main, ...[module.page(context)].flat());
  } catch (error) {
    if (until.aborted) return;
    fill(main, h('h1', { tabindex: '-1' }, 'This page cannot be shown'), failure(error));
  }
  main.dataset.address = address;
  scrollTo(0, 0);
  if (document.activeElement === document.body || document.activeElement?.closest('.places, main') !== null) main.querySelector('h1')?.focus({ preventScroll: true });
  say(document.title);
}

function showSignIn(problem) {
  visit.abort();
  self = null;
  document.title = 'Sign in – Creole';
  fill(document.body, signInPage(problem, begin));
}

async function begin() {
  try {
    self = await api.get('/self');
  } catch (error) {
    if (api.isSignedIn()) fill(document.body, h('main', null, h('h1', null, 'Creole console'), failure(error, begin)));
    return;
  }
  frame();
  show();
}

function showHelp() {
  const keys = [...PLACES.map(([, name, key]) => [`g ${key}`, name]), ['g n', 'Denials'], ['/', 'Search on this page'], ['p', 'Pause or go on (Calls, Log)'], ['?', 'This help'], ['Esc', 'Close']];
  const dialog = h('dialog', { 'aria-labelledby': 'help-title', on: { close: () => dialog.remove() } }, h('div', null, h('h2', { id: 'help-title' }, 'Keyboard'),
    h('dl', { class: 'keys' }, keys.map(([key, name]) => [h('dt', null, key.split(' ').flatMap((one) => [h('kbd', null, one), ' '])), h('dd', null, name)])),
    h('div', { class: 'actions' }, button('Close', () => dialog.close()))));
  document.body.append(dialog);
  dialog.showModal();
}

let isGoing = 0;
document.addEventListener('keydown', (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (self === null || event.ctrlKey || event.metaKey || event.altKey || target.closest('input:not([type=checkbox]):not([type=radio]), textarea, select, dialog')) return;
  if (Date.now() - isGoing < 1500) {
    isGoing = 0;
    const place = event.key === 'n' ? ['denials'] : PLACES.find(([, , key]) => key === event.key);
    if (place) { event.preventDefault(); location.hash = `#/${place[0]}`; }
  } else if (event.key === 'g') isGoing = Date.now();
  else if (event.key === '/') {
    const search = /** @type {HTMLInputElement | null} */ (main.querySelector('input[type=search]'));
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  } else if (event.key === '?') { event.preventDefault(); showHelp(); }
  else if (event.key === 'p') main.querySelector('[data-key=p]')?.click();
});
addEventListener('hashchange', () => { if (!takeLink()) show(); });

/** The link of `creole console` has its token behind the fragment, which no browser sends. */
function takeLink() {
  const token = /^#t=([\w-]+)$/.exec(location.hash)?.[1];
  if (token === undefined) return false;
  history.replaceState(null, '', '#/overview');
  api.signIn({ token }).then(begin, showSignIn);
  return true;
}
api.whenSignedOut(showSignIn);
if (!takeLink()) { if (api.isSignedIn()) begin(); else showSignIn(); }
