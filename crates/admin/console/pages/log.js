// The log of the process as it is written.
import { h, fill, keyed, setText } from '../dom.js';
import { follow } from '../api.js';
import { button, empty, failure, heading, labelled, loading, say, select, state, table } from '../widgets.js';
import { clock, count, dateTime, hidden, plural } from '../text.js';

export const title = 'Log';

const MOST_KEPT = 1000;
const MOST_SHOWN = 300;
const REDRAW = 250;
const LEVELS = /** @type {[string, string][]} */ ([['error', 'errors'], ['warn', 'warnings and errors'], ['info', 'info and above'], ['debug', 'debug and above'], ['trace', 'everything']]);

const value = (it) => typeof it === 'string' ? it : JSON.stringify(it);
/** The fields beside the message. @param {any} it */
const fields = (it) => Object.entries(it.fields ?? {}).map(([name, one]) => `${name}=${value(one)}`).join('  ');
const matches = (it, text) => text === '' || `${it.message} ${it.target} ${fields(it)}`.toLowerCase().includes(text);

/** @param {import('../app.js').Context} context */
export function page({ query, setQuery, until }) {
  const shown = loading('Waiting for the log…');
  const summary = h('span', { class: 'muted' });
  const trouble = h('div', { 'aria-live': 'polite' });
  const { node, body, row } = table('Log', [['Time', 'fit'], ['Level', 'fit'], ['Part', 'part'], ['Event', 'key']]);
  node.classList.add('compact', 'log');
  const none = empty('No event yet', 'Events appear here when the process logs them. Choose a lower level to see more.');
  const filter = { level: LEVELS.some(([name]) => name === query.get('level')) ? /** @type {string} */ (query.get('level')) : 'info', q: query.get('q') ?? '' };
  /** @type {{ number: number, it: any }[]} newest last */
  let events = [];
  let next = 0;
  let missed = 0;
  let behind = 0;
  let isPaused = false;
  let isDirty = false;
  let stop = new AbortController();

  const isHeld = () => isPaused || body.contains(document.activeElement) || body.matches(':hover') || !(getSelection()?.isCollapsed ?? true);
  const make = ({ it }) => ({
    node: row([h('time', { class: 'mono', title: dateTime(it.at) }, clock(it.at)), state(it.level.toLowerCase()), h('span', { class: 'mono' }, it.target),
      [h('span', { class: 'event' }, it.message), ' ', h('span', { class: 'fields' }, fields(it)), it.trace && h('span', { class: 'fields' }, `  trace=${it.trace}`)]]),
  });
  const draw = () => {
    const held = isHeld();
    setText(summary, [held ? behind ? `${plural(behind, 'new event')} wait${behind === 1 ? 's' : ''}` : isPaused ? 'paused' : 'held while you look' : 'live', missed > 0 && `${count(missed)} missed`, `${count(events.length)} kept`].filter(Boolean).join(' · '));
    if (!isDirty || held && body.children.length > 0) return;
    isDirty = false;
    behind = 0;
    const text = filter.q.toLowerCase();
    const newest = events.filter(({ it }) => matches(it, text)).slice(-MOST_SHOWN).reverse();
    keyed(body, newest, (one) => String(one.number), make);
    node.hidden = newest.length === 0;
    none.hidden = newest.length > 0;
  };
  const take = (name, data) => {
    if (name === 'open') {
      events = [];
      missed = 0;
      shown.show(() => [node, none]);
    } else if (name === 'missed') missed += data.missed;
    else if (name === 'log') {
      events.push({ number: next, it: data });
      next += 1;
      behind += 1;
      if (events.length > MOST_KEPT) events.splice(0, events.length - MOST_KEPT);
    }
    isDirty = true;
  };
  const start = () => {
    stop.abort();
    stop = new AbortController();
    setQuery({ level: filter.level === 'info' ? '' : filter.level, q: filter.q });
    follow(`/log?level=${filter.level}`, AbortSignal.any([until, stop.signal]), take, (error) => fill(trouble, error && failure(error)));
  };
  const timer = setInterval(draw, REDRAW);
  until.addEventListener('abort', () => clearInterval(timer));
  const pause = button('Pause', () => { isPaused = !isPaused; setText(pause, isPaused ? 'Go on' : 'Pause'); pause.setAttribute('aria-pressed', String(isPaused)); say(isPaused ? 'Paused' : 'Live'); draw(); }, { 'data-key': 'p', 'aria-pressed': 'false' });
  const search = h('input', { type: 'search', value: hidden.inline(filter.q), spellcheck: 'false', on: { input: () => { filter.q = search.value.trim(); setQuery({ level: filter.level === 'info' ? '' : filter.level, q: filter.q }); isDirty = true; draw(); } } });
  start();
  return [heading('Log', { beside: summary, lead: 'The events of this process, newest first. Events below the level of the log are recorded only while this page is open.', actions: [pause] }),
    h('div', { class: 'filters' }, labelled('Level', select(LEVELS, filter.level, (chosen) => { filter.level = chosen; start(); })), h('div', { class: 'wide' }, labelled('Search ( / )', search))), trouble, shown.node];
}
