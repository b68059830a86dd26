// What happens now, and what is wrong.
import { h, fill, keyed, setText } from '../dom.js';
import { poll } from '../api.js';
import { bars } from '../charts.js';
import { count, duration, percent, plural, rate } from '../text.js';
import { address, button, empty, heading, link, loading, moment, section, setMessage, state } from '../widgets.js';
import { denialTable } from './denials.js';
import { replicaTable } from './replica_table.js';
import { upstreamTable } from './upstream_table.js';

export const title = 'Overview';

/** @param {string} name */
function tile(name) {
  const figure = h('dd', { class: 'figure' }, '–');
  const aside = h('dd', { class: 'aside' });
  return { node: h('div', { class: 'tile' }, h('dt', null, name), figure, aside), /** @param {string} text @param {string} [more] */ set(text, more = '') { setText(figure, text); setText(aside, more); } };
}

function place(alert) {
  switch (alert.code) {
    case 'upstream-failed': case 'breaker-open': case 'list-failed': return address(['upstreams', alert.target ?? '']);
    case 'tools-withheld': return '#/approvals';
    case 'config-refused': case 'config-differs': return '#/config';
    default: return null;
  }
}

function alertLine(alert) {
  const tone = alert.severity === 'error' ? 'bad' : alert.severity === 'info' ? 'busy' : 'warn';
  const href = place(alert);
  const text = h('span', null);
  const since = h('span', { class: 'muted' });
  const update = (next) => { setMessage(text, next.text); fill(since, next.since && moment(next.since)); };
  update(alert);
  return { node: h('li', { class: `notice ${tone}` }, h('div', { class: 'row' }, state(alert.severity), text, since, href && link('Look', href))), update };
}

/** @param {import('../app.js').Context} context */
export function page({ until }) {
  const shown = loading();
  const tiles = Object.fromEntries([['calls', 'Calls per second'], ['errors', 'Errors'], ['latency', 'p95'], ['active', 'In flight'], ['sessions', 'Sessions'], ['parked', 'Parked'], ['tasks', 'Tasks']].map(([key, name]) => [key, tile(name)]));
  const alerts = h('ul', { class: 'alerts' });
  const health = h('div', null);
  const chart = h('div', { class: 'panel stack' });
  const upstreams = upstreamTable();
  const noUpstreams = empty('No upstreams', 'This process serves its own tools. Add [upstreams.NAME] to the configuration to put other servers behind it.');
  const denials = denialTable('Refusals of the last hour');
  const replicas = replicaTable();
  const ofReplicas = section('Replicas', replicas.node);
  ofReplicas.hidden = true;
  const refused = h('div', { class: 'stack' });
  let range = 'minute';
  /** @type {any} */
  let last = null;

  const choose = (name, text) => button(text, () => { range = name; if (last) draw(last); }, { class: 'small', 'data-range': name, 'aria-pressed': 'false' });
  const ranges = h('div', { class: 'actions' }, choose('minute', 'Last minute'), choose('quarter', 'Last 15 minutes'));

  const draw = (data) => {
    last = data;
    const { totals, rates } = data;
    const tasks = { working: 0, input_required: 0, completed: 0, failed: 0, ...totals.tasks };
    const now = rates[range];
    tiles.calls.set(rate(now.calls_per_second), `${count(totals.calls)} since the start`);
    tiles.errors.set(percent(now.error_ratio), `${count(totals.errors)} since the start`);
    tiles.latency.set(duration(now.p95_ms), now.p50_ms === undefined ? 'no calls' : `p50 ${duration(now.p50_ms)}, p99 ${duration(now.p99_ms)}`);
    tiles.active.set(count(totals.active), `up ${duration(data.uptime_ms)}`);
    tiles.sessions.set(count(totals.sessions), plural(totals.streams ?? 0, 'stream'));
    tiles.parked.set(count(totals.parked), totals.parked ? 'wait for a client' : '');
    tiles.tasks.set(count(tasks.working + tasks.input_required), `${count(tasks.completed)} completed, ${count(tasks.failed)} failed`);
    for (const it of ranges.children) it.setAttribute('aria-pressed', String(it.getAttribute('data-range') === range));
    const points = data.points[range];
    const most = Math.max(0, ...points.calls);
    const sum = points.calls.reduce((a, b) => a + b, 0);
    const bad = points.errors.reduce((a, b) => a + b, 0);
    const span = range === 'minute' ? 'the last minute' : 'the last 15 minutes';
    fill(chart, bars(points, `${plural(sum, 'call')} and ${plural(bad, 'error')} in ${span}`),
      h('div', { class: 'chart-legend' }, h('span', null, range === 'minute' ? '1 minute ago' : '15 minutes ago'), h('span', null, `${plural(sum, 'call')}, ${plural(bad, 'error')}, at most ${count(most)} in ${points.step_ms / 1000} s`), h('span', null, 'now')));
    keyed(alerts, data.alerts, (it) => `${it.code} ${it.target}`, alertLine);
    health.replaceChildren(...data.alerts.length ? [] : [h('div', { class: 'notice good' }, h('div', { class: 'row' }, state('ready', 'Nothing is wrong'), h('span', { class: 'muted' }, `${plural(data.upstreams.filter((it) => it.state === 'ready').length, 'upstream')} ready, configuration accepted`)))]);
    upstreams.update(data.upstreams);
    upstreams.node.hidden = data.upstreams.length === 0;
    noUpstreams.hidden = data.upstreams.length > 0;
    denials.update(data.refusals.groups);
    denials.node.hidden = data.refusals.groups.length === 0;
    fill(refused, data.refusals.groups.length === 0 && h('p', { class: 'muted' }, 'Nobody was refused anything.'), data.refusals.total > 0 && link(`All denials (${count(data.refusals.total)})`, '#/denials'));
    shown.show(() => h('div', { class: 'sections' }, h('div', { class: 'stack' }, health, alerts),
      h('dl', { class: 'tiles' }, Object.values(tiles).map((it) => it.node)),
      h('section', { 'aria-labelledby': 'traffic' }, h('div', { class: 'page-head' }, h('h2', { id: 'traffic' }, 'Calls'), ranges), chart),
      section('Upstreams', upstreams.node, noUpstreams), ofReplicas, section('Refusals of the last hour', denials.node, refused)));
  };
  poll('/overview', 1000, until, draw, (error) => shown.fail(error));
  poll('/replicas', 5000, until, ({ items }) => { replicas.update(items); ofReplicas.hidden = items.length < 2; }, () => undefined);
  return [heading('Overview'), shown.node];
}
