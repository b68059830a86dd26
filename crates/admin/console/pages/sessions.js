// Sessions, tasks and parked calls.
import { h, fill, keyed } from '../dom.js';
import { change, poll } from '../api.js';
import { address, ask, button, empty, failure, heading, link, loading, moment, state, table, tabs } from '../widgets.js';
import { count, duration, plural } from '../text.js';

export const title = 'Sessions';

const client = (it) => it.client ? `${it.client.name} ${it.client.version ?? ''}` : '–';
/** @type {Record<string, { name: string, path: string, one: string, columns: (string | [string, string])[], cells: (it: any) => import('../dom.js').Child[], none: [string, string], ends: string, canEnd?: (it: any) => boolean }>} */
const LISTS = {
  sessions: {
    name: 'Sessions', path: '/sessions', one: 'session', ends: 'Its client must connect again.',
    columns: [['Session', 'key'], 'Server', 'Caller', 'Client', ['Revision', 'fit'], ['Streams', 'num'], ['In flight', 'num'], ['Age', 'fit'], ['Idle', 'fit']],
    cells: (it) => [h('code', null, it.id.slice(0, 8)), it.server, it.principal ?? '–', client(it), it.revision, count(it.streams), count(it.active), duration(it.age_ms), duration(it.idle_ms)],
    none: ['No session', 'Clients of the handshake era open one with initialize. Clients of 2026-07-28 have none: each of their requests is complete.'],
  },
  tasks: {
    name: 'Tasks', path: '/tasks', one: 'task', ends: 'It is cancelled.',
    columns: [['Task', 'key'], 'Server', 'Tool', 'Caller', ['Revision', 'fit'], ['State', 'fit'], ['Age', 'fit'], ['Changed', 'fit'], 'Message'],
    cells: (it) => [h('code', null, it.id.slice(0, 8)), it.server, it.target, it.principal, it.revision, state(it.status), duration(it.age_ms), moment(it.updated), it.message ?? '–'],
    none: ['No task', 'A call that goes on after its response is a task. It stays here for a while after its end.'],
    canEnd: (it) => ['working', 'input_required'].includes(it.status),
  },
  parked: {
    name: 'Parked calls', path: '/parked', one: 'parked call', ends: 'Its tool gets an error for the input that it asked for.',
    columns: [['Parked call', 'key'], 'Upstream', 'Caller'],
    cells: (it) => [h('code', null, it.id.slice(0, 8)), link(it.upstream, address(['upstreams', it.upstream])), it.principal],
    none: ['No parked call', 'A call waits here while an upstream of the handshake era waits for an answer of a client of 2026-07-28.'],
  },
};

/** @param {import('../app.js').Context} context */
export function page({ query, until, may }) {
  const kind = LISTS[query.get('list') ?? ''] ? /** @type {string} */ (query.get('list')) : 'sessions';
  const list = LISTS[kind];
  const shown = loading();
  const summary = h('span', { class: 'muted' });
  const trouble = h('div', { 'aria-live': 'polite' });
  const { node, body, row } = table(list.name, [...list.columns, ...may('operate') ? [/** @type {[string, string]} */ (['', 'fit'])] : []]);
  const none = empty(...list.none);
  const end = async (it) => {
    if (!await ask(`End this ${list.one}?`, list.ends, 'End it')) return;
    try { await change('DELETE', `${list.path}/${encodeURIComponent(it.id)}`); again(); } catch (error) { fill(trouble, failure(error)); }
  };
  const make = (it) => {
    const act = button('End', () => end(it), { class: 'small', 'aria-label': `End ${list.one} ${it.id.slice(0, 8)}` });
    const line = row([...list.cells(it), ...may('operate') ? [act] : []]);
    const update = (next) => {
      list.cells(next).forEach((cell, index) => fill(line.children[index], cell));
      act.hidden = list.canEnd?.(next) === false;
    };
    update(it);
    return { node: line, update };
  };
  const again = poll(list.path === '/parked' ? list.path : `${list.path}?limit=500`, 2000, until, ({ items, next }) => {
    fill(summary, items.length ? `${plural(items.length, list.one)}${next ? ' and more' : ''}` : '');
    keyed(body, items, (it) => it.id, make);
    node.hidden = items.length === 0;
    none.hidden = items.length > 0;
    shown.show(() => [node, none]);
  }, (error) => shown.fail(error));
  return [heading(list.name, { beside: summary, lead: 'Ids are hashes: they name a thing here and open nothing.' }),
    tabs('Lists', Object.entries(LISTS).map(([name, one]) => ({ name: one.name, href: address(['sessions'], { list: name === 'sessions' ? '' : name }), current: name === kind }))), trouble, shown.node];
}
