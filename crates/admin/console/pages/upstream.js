// One upstream: its state, its failures, its processes and what clients of each revision get.
import { h, fill } from '../dom.js';
import { change, poll } from '../api.js';
import { strip } from '../charts.js';
import { tree } from '../json_view.js';
import { bytes, count, dateTime, duration, plural } from '../text.js';
import { address, ask, button, facts, failure, heading, link, loading, message, moment, say, section, state, table } from '../widgets.js';
import { note } from './upstream_table.js';

export const title = 'Upstream';

const summary = (it) => facts([
  ['State', [state(it.state), ' ', it.since && h('span', { class: 'muted' }, 'since ', moment(it.since))]], ['Note', note(it) && message(note(it))],
  ['Server', it.server && `${it.server.name} ${it.server.version ?? ''}`], ['Revision', it.revision && `${it.revision} (${it.era})`],
  ['Transport', it.transport], ['Address', it.address], ['Program', it.program],
  ['Calls', `${count(it.calls)}, ${plural(it.errors ?? 0, 'error')}, ${count(it.active ?? 0)} in flight`], ['Latency, 5 minutes', it.p95_ms !== undefined && `p50 ${duration(it.p50_ms)}, p95 ${duration(it.p95_ms)}`],
  ['Starts', it.starts && `${count(it.starts.ok)} worked, ${count(it.starts.failed)} failed`],
  ['Breaker', it.breaker && it.breaker !== 'none' && `${it.breaker.replace('_', ' ')}${it.breaker_detail?.failures ? `, ${plural(it.breaker_detail.failures, 'failure')}` : ''}`],
  ['Processes', it.process && `${plural(it.process.pids, 'process', 'processes')}, ${bytes(it.process.memory_bytes)}, ${(it.process.cpu_seconds ?? 0).toFixed(1)} s of CPU`],
]);

function fidelity(rows) {
  const revisions = Object.keys(rows[0].cells);
  const { node, body, row } = table('What clients of each revision get', [['Feature', 'key'], ...revisions]);
  body.append(...rows.map((it) => row([it.feature, ...revisions.map((revision) => it.cells[revision] === '-' ? h('span', { class: 'muted' }, '–') : state(it.cells[revision]))])));
  return node;
}

function details(it) {
  const parts = [];
  if (it.last_error && it.state !== 'ready') parts.push(h('div', { class: 'notice bad' }, h('p', { class: 'notice-title' }, message(it.last_error.message)), it.last_error.stderr?.length > 0 && h('pre', null, it.last_error.stderr.join('\n'))));
  if (it.history?.length) parts.push(section('History', strip(it.history, Date.now()), h('div', { class: 'chart-legend' }, h('span', null, dateTime(it.history[0].at)), h('span', null, plural(it.history.length - 1, 'change')), h('span', null, 'now'))));
  if (it.fidelity?.length) parts.push(section('What clients of each revision get', fidelity(it.fidelity)));
  const lists = (it.lists ?? []).map((one) => h('li', null, `${one.kind.replace(/_|(?=[A-Z])/, ' ').toLowerCase()}: ${count(one.items)}`, one.failure && h('span', { class: 'bad' }, ` – ${one.failure}`)));
  const excluded = (it.excluded ?? []).map((one) => h('li', null, one.text));
  parts.push(h('div', { class: 'columns' },
    section('Items', h('div', { class: 'panel stack' }, lists.length ? h('ul', null, lists) : h('p', { class: 'muted' }, 'No list was fetched yet.'), link('Its tools', address(['tools'], { q: it.name })), excluded.length > 0 && [h('h3', null, 'Not served'), h('ul', null, excluded)])),
    section('Connections', connections(it.connections ?? []))));
  parts.push(section('Standard error', it.stderr?.length ? h('pre', { class: 'panel', tabindex: '0' }, it.stderr.join('\n')) : h('p', { class: 'muted' }, it.transport === 'http' ? 'An upstream over HTTP has none.' : 'The process wrote nothing.')));
  if (it.instructions) parts.push(section('Instructions', h('p', { class: 'panel prose' }, it.instructions)));
  if (it.capabilities) parts.push(section('Capabilities', h('div', { class: 'panel' }, tree(it.capabilities, 2))));
  return parts;
}

function connections(items) {
  if (items.length === 0) return h('p', { class: 'muted' }, 'None is open.');
  const { node, body, row } = table('Connections', ['Belongs to', ['State', 'fit'], ['Calls', 'num']]);
  body.append(...items.map((it) => row([it.owner, it.state, count(it.calls)])));
  return node;
}

/** @param {import('../app.js').Context} context */
export function page({ path: [name], until, may, setTitle }) {
  setTitle(name);
  const shown = loading();
  const top = h('div', { class: 'stack' });
  const rest = h('div', { class: 'sections' });
  const trouble = h('div', { 'aria-live': 'polite' });
  let drawn = '';
  const again = poll(`/upstreams/${encodeURIComponent(name)}`, 1000, until, (it) => {
    fill(top, summary(it));
    // The rest is drawn again only when it changed, so that a selection in it stays.
    const { since, active, next_start_ms: next, process, p50_ms: p50, p95_ms: p95, calls_per_second: rate, calls, errors, ...stable } = it;
    const text = JSON.stringify(stable);
    if (text !== drawn) { drawn = text; fill(rest, details(it)); }
    reset.disabled = it.breaker === 'none' || it.breaker === 'closed' || it.breaker === undefined;
    shown.show(() => h('div', { class: 'sections' }, top, rest));
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
