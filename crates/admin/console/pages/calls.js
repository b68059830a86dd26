// Calls as they happen.
import { h, fill, keyed, setText } from '../dom.js';
import { change, follow, get, poll } from '../api.js';
import { address, button, empty, failure, heading, labelled, link, loading, say, select, state, table } from '../widgets.js';
import { clock, count, duration, plural } from '../text.js';

export const title = 'Calls';

const MOST_KEPT = 2000;
const MOST_SHOWN = 200;
const REDRAW = 250;
const OUTCOMES = /** @type {[string, string][]} */ ([['', 'all'], ['success', 'success'], ['tool_error', 'tool error'], ['fault', 'fault'], ['input_required', 'input required'], ['task', 'task'], ['cancelled', 'cancelled']]);

/** The revisions on both sides. @param {any} it */
export const eras = (it) => it.upstream_revision && it.upstream_revision !== it.revision ? `${it.revision} → ${it.upstream_revision}` : it.revision ?? '–';
export const outcome = (it) => it.state === 'active' ? state('active', 'in flight') : it.denied_by ? state('denied') : state(it.outcome ?? 'ended', it.fault ?? undefined);

const cells = (it) => [
  link(clock(it.started), address(['calls', it.id]), { class: 'mono' }), it.principal ?? '–', it.upstream && it.server ? `${it.server} → ${it.upstream}` : it.server || 'gateway', it.method === '_OTHER' ? 'unknown' : it.method, it.target || '–', eras(it), outcome(it), it.state === 'active' ? '…' : duration(it.duration_ms),
];

/** @param {import('../app.js').Context} context */
export function page({ query, setQuery, until, may, self }) {
  const shown = loading();
  const names = ['q', 'target', 'principal', 'upstream', 'outcome', 'work'];
  const filter = Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']));
  const { node, body, row } = table('Calls', [['Time', 'fit'], 'Caller', 'Server → upstream', ['Method', 'fit'], ['Target', 'key'], 'Revisions', ['Outcome', 'fit'], ['Took', 'num']]);
  node.classList.add('compact');
  const none = empty('No call yet', 'Calls appear here while they run. Let a client call a tool, or try one.', link('Tools', '#/tools', { class: 'button' }));
  const summary = h('span', { class: 'muted' });
  const trouble = h('div', { 'aria-live': 'polite' });
  /** @type {Map<string, any>} newest last */
  let calls = new Map();
  let isPaused = false;
  let isDirty = false;
  let missed = 0;
  let behind = 0;
  let stop = new AbortController();

  const isHeld = () => isPaused || body.contains(document.activeElement) || body.matches(':hover');
  const make = (it) => {
    let last = it;
    const line = row(cells(it), { 'data-id': it.id });
    return { node: line, update: (next) => { if (next === last) return; last = next; cells(next).forEach((cell, index) => { if (index > 0) fill(line.children[index], cell); }); } };
  };
  const draw = () => {
    const held = isHeld();
    const parts = [held ? behind ? `${plural(behind, 'new call')} wait${behind === 1 ? 's' : ''}` : isPaused ? 'paused' : 'held while you look' : 'live', missed > 0 && `${count(missed)} missed`, `${count(calls.size)} kept`];
    setText(summary, parts.filter(Boolean).join(' · '));
    if (!isDirty || held && body.children.length > 0) return;
    isDirty = false;
    behind = 0;
    const newest = [...calls.values()].slice(-MOST_SHOWN).reverse();
    keyed(body, newest, (it) => it.id, make);
    node.hidden = newest.length === 0;
    none.hidden = newest.length > 0;
  };
  const take = (items) => {
    for (const it of items) { if (!calls.has(it.id)) behind += 1; calls.set(it.id, it); }
    for (const id of calls.keys()) { if (calls.size <= MOST_KEPT) break; calls.delete(id); }
    isDirty = true;
  };
  const start = async () => {
    stop.abort();
    stop = new AbortController();
    const leaving = AbortSignal.any([until, stop.signal]);
    setQuery(filter);
    // What the gateway does for itself, such as starts of upstreams, is shown on demand.
    const { work, ...wanted } = filter;
    const search = new URLSearchParams(Object.entries({ ...wanted, clients: work ? '' : '1' }).filter((entry) => entry[1]));
    calls = new Map();
    try {
      const { items } = await get(`/calls?limit=${MOST_SHOWN}&${search}`, { until: leaving });
      take(items.reverse());
      shown.show(() => [node, none]);
    } catch (error) {
      if (leaving.aborted) return;
      shown.fail(error, start);
      return;
    }
    behind = 0;
    draw();
    follow(`/calls?live=1&${search}`, leaving, (name, data) => { if (name === 'calls') { take(data.items); missed += data.missed ?? 0; } }, (error) => fill(trouble, error && failure(error)));
  };
  const timer = setInterval(draw, REDRAW);
  until.addEventListener('abort', () => clearInterval(timer));

  let typing = 0;
  const field = (name, label, type = 'text') => labelled(label, h('input', { type, value: filter[name], spellcheck: 'false', on: { input: (event) => { clearTimeout(typing); typing = window.setTimeout(() => { filter[name] = event.target.value.trim(); start(); }, 250); } } }));
  const pause = button('Pause', () => { isPaused = !isPaused; setText(pause, isPaused ? 'Go on' : 'Pause'); pause.setAttribute('aria-pressed', String(isPaused)); say(isPaused ? 'Paused' : 'Live'); draw(); }, { 'data-key': 'p', 'aria-pressed': 'false' });
  start();
  const captures = capturePart(may('operate') && self.capture === 'ask', filter, until, trouble);
  return [heading('Calls', { beside: summary, actions: [pause, captures.button] }), captures.node, h('div', { class: 'filters' }, h('div', { class: 'wide' }, field('q', 'Search ( / )', 'search')), field('target', 'Target'), field('principal', 'Caller'), field('upstream', 'Upstream'),
    labelled('Outcome', select(OUTCOMES, filter.outcome, (value) => { filter.outcome = value; start(); })), labelled('Show', select([['', 'calls of clients'], ['1', 'also work of Creole itself']], filter.work, (value) => { filter.work = value; start(); }))), trouble, shown.node];
}

/** Payloads are kept only while somebody asked for them. @param {boolean} isAllowed @param {Record<string, string>} filter @param {AbortSignal} until @param {any} trouble */
function capturePart(isAllowed, filter, until, trouble) {
  const node = h('div', { class: 'stack' });
  const end = async (id) => { try { await change('DELETE', `/captures/${encodeURIComponent(id)}`); again(); } catch (error) { fill(trouble, failure(error)); } };
  const draw = (/** @type {any} */ { items }) => fill(node, items.map((it) => {
    const what = Object.entries(it.filter ?? {}).filter((entry) => entry[1]).map(([name, value]) => `${name} ${value}`).join(', ') || 'all calls';
    return h('div', { class: 'notice busy' }, h('div', { class: 'row' }, state('active', 'Capture'), h('span', null, `${it.by}: ${what}; ${it.taken} of ${it.max} taken, ends ${clock(it.ends).slice(0, 8)}`), isAllowed && button('End', () => end(it.id), { class: 'small', 'aria-label': 'End the capture' })));
  }));
  const again = poll('/captures', 3000, until, draw, () => {});
  const begin = async () => {
    const answer = await captureDialog(filter);
    if (!answer) return;
    try { await change('POST', '/captures', answer); again(); say('The capture runs'); } catch (error) { fill(trouble, failure(error)); }
  };
  return { node, button: isAllowed && button('Capture…', begin) };
}

/** @param {Record<string, string>} filter @returns {Promise<any>} */
function captureDialog(filter) {
  return new Promise((resolve) => {
    const inputs = Object.fromEntries([['target', 'Target', filter.target], ['upstream', 'Upstream', filter.upstream], ['principal', 'Caller', filter.principal], ['minutes', 'Minutes (1 to 30)', '10'], ['max', 'Calls (1 to 200)', '50']].map(([name, label, value]) => [name, { label, node: h('input', { type: 'text', value, spellcheck: 'false', inputmode: name === 'max' || name === 'minutes' ? 'numeric' : 'text' }) }]));
    const submit = (event) => {
      event.preventDefault();
      const chosen = Object.fromEntries(['target', 'upstream', 'principal'].map((name) => [name, inputs[name].node.value.trim()]).filter((entry) => entry[1]));
      resolve({ filter: chosen, minutes: Number(inputs.minutes.node.value), max: Number(inputs.max.node.value) });
      dialog.close();
    };
    const dialog = h('dialog', { 'aria-labelledby': 'capture-title', on: { close: () => { dialog.remove(); resolve(null); } } }, h('form', { on: { submit } }, h('h2', { id: 'capture-title' }, 'Keep payloads of calls'),
      h('p', null, 'Requests and results of matching calls are kept in memory, redacted, until the capture ends. An audit line says who looked.'),
      Object.values(inputs).map((it) => labelled(it.label, it.node)), h('div', { class: 'actions' }, button('Cancel', () => dialog.close()), h('button', { type: 'submit', class: 'primary' }, 'Start'))));
    document.body.append(dialog);
    dialog.showModal();
  });
}
