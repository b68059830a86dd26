// One upstream: its state, its failures, its processes and what clients of each revision get.
import { h, fill } from '../dom.js';
import { change, poll } from '../api.js';
import { strip } from '../charts.js';
import { bytes, count, dateTime, duration, plural } from '../text.js';
import { address, ask, button, facts, failure, heading, link, loading, message, moment, say, section, state, table, tag } from '../widgets.js';
import { note } from './upstream_table.js';

export const title = 'Upstream';

const MOST_CHANGES = 8;

const summary = (it) => facts([
  ['State', [state(it.state), ' ', it.since && h('span', { class: 'muted' }, 'since ', moment(it.since))]], ['Note', note(it) && message(note(it))],
  ['Server', it.server && `${it.server.name} ${it.server.version ?? ''}`], ['Revision', it.revision && `${it.revision} (${it.era})`],
  ['Transport', it.transport], ['Address', it.address], ['Program', it.program],
  ['Calls', `${count(it.calls)}, ${plural(it.errors ?? 0, 'error')}`], ['Latency, 5 minutes', it.p95_ms !== undefined && `p50 ${duration(it.p50_ms)}, p95 ${duration(it.p95_ms)}`],
  ['Starts', `${count(it.starts.ready)} worked, ${count(it.starts.failed)} failed`],
  ['Connections', `${count(it.connections.idle)} idle, ${count(it.connections.busy)} busy`],
  ['Breaker', it.breaker !== 'none' && it.breaker.replace('_', ' ')],
  ['Processes', it.process && `${plural(it.process.pids, 'process', 'processes')}, ${bytes(it.process.memory_bytes)}`],
]);

function history(changes) {
  const last = changes.slice(-MOST_CHANGES).reverse();
  return section('History', strip(changes, Date.now()), h('div', { class: 'chart-legend' }, h('span', null, dateTime(changes[0].at)), h('span', null, plural(changes.length - 1, 'change')), h('span', null, 'now')),
    h('ol', { class: 'changes', 'aria-label': 'Last changes, newest first' }, last.map((it) => h('li', null, state(it.state), ' ', h('span', { class: 'muted' }, dateTime(it.at))))));
}

/** Words, not colours: what each revision of a client gets. @param {any[]} rows */
function fidelity(rows) {
  const revisions = Object.keys(rows[0].cells);
  const { node, body, row } = table('What clients of each revision get', [['Feature', 'key'], ...revisions]);
  body.append(...rows.map((it) => row([it.feature, ...revisions.map((revision) => cell(it.cells[revision]))])));
  const notes = new Map();
  for (const it of rows) for (const one of Object.values(it.cells)) if (one.how && !notes.has(one.how)) notes.set(one.how, [it.feature, one.support]);
  return section('What clients of each revision get', node, notes.size > 0 && h('ul', { class: 'rules' }, [...notes].map(([how, [feature, support]]) => h('li', null, h('span', null, `${feature}, ${support}: `), message(how)))));
}

const cell = ({ support, how }) => support === '-' ? h('span', { class: 'muted' }, 'not offered') : h('span', { title: how ?? '' }, state(support));

function lists(it) {
  const counts = it.lists.map((one) => h('li', null, `${one.kind.replace(/_|(?=[A-Z])/, ' ').toLowerCase()}: ${count(one.items)}`, one.failure && h('span', { class: 'bad' }, ` – ${one.failure}`)));
  return section('Items', h('div', { class: 'panel stack' }, counts.length ? h('ul', null, counts) : h('p', { class: 'muted' }, 'No list was fetched yet.'), link('Its tools', address(['tools'], { q: it.name })),
    it.excluded.length > 0 && [h('h3', null, 'Not served'), h('ul', null, it.excluded.map((one) => h('li', null, one)))]));
}

const OWNERS = /** @type {Record<string, string>} */ ({ gateway: 'this process', lists: 'this process, for lists' });

function connections({ owners }) {
  if (owners.length === 0) return section('Connections', h('p', { class: 'muted' }, 'None is open.'));
  const { node, body, row } = table('Connections', ['Belongs to', ['Idle', 'num'], ['Busy', 'num'], ['Calls', 'num']]);
  body.append(...owners.map((it) => row([OWNERS[it.owner] ?? ['caller ', h('code', null, it.owner)], count(it.idle), count(it.busy), count(it.calls)])));
  return section('Connections', node, owners.some((it) => !(it.owner in OWNERS)) && h('p', { class: 'hint' }, 'A caller is shown as a hash.'));
}

const lastError = (it) => it.last_error && it.state !== 'ready' && h('div', { class: 'notice bad' }, h('p', { class: 'notice-title' }, message(it.last_error.message)), it.last_error.stderr?.length > 0 && h('pre', null, it.last_error.stderr.join('\n')));
const stderr = (it) => section('Standard error', it.stderr.length ? h('pre', { class: 'panel', tabindex: '0' }, it.stderr.join('\n')) : h('p', { class: 'muted' }, it.transport === 'http' ? 'An upstream over HTTP has none.' : 'The process wrote nothing.'));
const capabilities = (names) => section('Capabilities', names.length ? h('p', { class: 'tags' }, names.map((name) => [tag(name), ' '])) : h('p', { class: 'muted' }, 'It has not said what it offers.'));

/** The parts of the page. Each is drawn again only when its data changed, so that a selection in another one stays. @type {{ data: (it: any) => any, draw: (it: any) => import('../dom.js').Child }[]} */
const PARTS = [
  { data: (it) => [it.last_error, it.state === 'ready'], draw: lastError },
  { data: (it) => it.history, draw: (it) => it.history.length > 0 && history(it.history) },
  { data: (it) => it.fidelity, draw: (it) => it.fidelity.length > 0 && fidelity(it.fidelity) },
  { data: (it) => it.capabilities, draw: (it) => capabilities(it.capabilities) },
  { data: (it) => it.connections, draw: (it) => connections(it.connections) },
  { data: (it) => [it.lists, it.excluded], draw: lists },
  { data: (it) => it.stderr, draw: stderr },
];

/** @param {import('../app.js').Context} context */
export function page({ path: [name], until, may, setTitle }) {
  setTitle(name);
  const shown = loading();
  const top = h('div', { class: 'stack' });
  const parts = PARTS.map((part) => ({ ...part, node: h('div', null), drawn: '' }));
  const trouble = h('div', { 'aria-live': 'polite' });
  const again = poll(`/upstreams/${encodeURIComponent(name)}`, 1000, until, (it) => {
    fill(top, summary(it));
    for (const part of parts) {
      const text = JSON.stringify(part.data(it) ?? null);
      if (text === part.drawn) continue;
      part.drawn = text;
      fill(part.node, part.draw(it));
      part.node.hidden = part.node.childElementCount === 0;
    }
    reset.disabled = it.breaker === 'none' || it.breaker === 'closed';
    shown.show(() => h('div', { class: 'sections' }, top, parts.map((part) => part.node)));
  }, (error) => shown.fail(error));
  const act = (action, done) => async () => {
    if (action === 'restart' && !await ask(`Restart ${name}?`, 'Calls that it works on fail. Others wait for the start.', 'Restart')) return;
    try {
      await change('POST', `/upstreams/${encodeURIComponent(name)}/${action}`, {});
      fill(trouble, h('div', { class: 'notice good' }, h('p', null, done)));
      say(done);
      again();
    } catch (error) { fill(trouble, failure(error)); }
  };
  const reset = button('Reset breaker', act('breaker/reset', 'The breaker is closed.'));
  const actions = may('operate') && [button('Probe', act('probe', 'The upstream is probed.')), reset, button('Restart', act('restart', 'The restart began.'))];
  return [heading(name, { above: link('Upstreams', '#/upstreams'), actions }), trouble, shown.node];
}
