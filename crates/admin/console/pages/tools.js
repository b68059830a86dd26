// Every tool, resource and prompt, also those that are not served, with the reason.
import { h, fill } from '../dom.js';
import { get } from '../api.js';
import { bytes, count, plural } from '../text.js';
import { address, button, empty, failure, heading, labelled, link, loading, select, state, table, tabs, tag } from '../widgets.js';

export const title = 'Tools';

const KINDS = [['tool', 'Tools'], ['resource', 'Resources'], ['resource_template', 'Templates'], ['prompt', 'Prompts']];

export function hintTags(hints = {}) {
  return h('span', { class: 'tags' }, hints.readOnly && tag('read only', 'good'), hints.destructive && !hints.readOnly && tag('destructive', 'bad'), hints.idempotent && tag('idempotent'), hints.openWorld && tag('open world'));
}

/** @param {any} it @param {string} server */
const cells = (it, server) => [
  [link(it.name, address(['tools', it.id], { server })), it.title && it.title !== it.name && h('span', { class: 'sub' }, ` ${it.title}`), it.description && h('div', { class: 'sub clip' }, it.description)],
  it.origin === 'server' ? h('span', { class: 'muted' }, 'this process') : link(it.origin, address(['upstreams', it.origin])),
  hintTags(it.hints), it.bytes ? h('span', { title: `${bytes(it.bytes)}; bytes / 4` }, `≈ ${count(it.tokens)}`) : '–',
  it.state === 'listed' ? state('listed') : h('span', null, state(it.state), it.reason && h('div', { class: 'sub' }, it.reason)),
];

/** @param {import('../app.js').Context} context */
export function page({ query, setQuery, until }) {
  const shown = loading();
  const filter = { server: query.get('server') ?? '', kind: query.get('kind') ?? 'tool', q: query.get('q') ?? '', state: query.get('state') ?? '' };
  const { node, body, row } = table('Items', [['Name', 'key wide'], 'From', 'Hints', ['Tokens', 'num'], 'State']);
  const result = h('div', { class: 'stack' });
  const summary = h('span', { class: 'muted', 'aria-live': 'polite' });
  let run = 0;
  const load = async (cursor = '') => {
    run += 1;
    const mine = run;
    setQuery({ ...filter, kind: filter.kind === 'tool' ? '' : filter.kind });
    const search = new URLSearchParams({ kind: filter.kind, limit: '200', ...filter.q && { q: filter.q }, ...filter.state && { state: filter.state }, ...cursor && { cursor } });
    try {
      const { items, next } = await get(`/servers/${encodeURIComponent(filter.server)}/items?${search}`, { until });
      if (mine !== run) return;
      if (!cursor) body.replaceChildren();
      body.append(...items.map((it) => row(cells(it, filter.server), it.state === 'withheld' ? { class: 'attention' } : {})));
      fill(summary, body.children.length ? `${plural(body.children.length, 'item')}${next ? ' so far' : ''}` : '');
      if (body.children.length > 0) fill(result, node, next && h('div', null, button('Show more', () => load(next))));
      else fill(result, filter.q || filter.state ? empty('Nothing matches', 'No name, title or description contains these words in this list.', button('Show all', () => { filter.q = ''; filter.state = ''; search_.value = ''; states.value = ''; load(); })) : empty('The list is empty', 'This server has no items of this kind. An upstream that is not ready has none either.', link('Upstreams', '#/upstreams', { class: 'button' })));
    } catch (error) {
      if (!until.aborted && mine === run) fill(result, failure(error, () => load()));
    }
  };
  let typing = 0;
  const search_ = h('input', { type: 'search', value: filter.q, placeholder: 'Name, title or description', on: { input: () => { clearTimeout(typing); typing = window.setTimeout(() => { filter.q = search_.value; load(); }, 150); } } });
  const states = select([['', 'all'], ['listed', 'listed'], ['withheld', 'withheld'], ['excluded', 'excluded']], filter.state, (value) => { filter.state = value; load(); });
  get('/servers', { until }).then(({ items }) => {
    if (items.length === 0) { shown.show(() => empty('No server', 'This process serves nothing.')); return; }
    if (!items.some((it) => it.name === filter.server)) filter.server = items[0].name;
    const kinds = tabs('Kinds', KINDS.map(([kind, name]) => ({ name, href: address(['tools'], { server: filter.server, kind }), current: kind === filter.kind })));
    shown.show(() => h('div', { class: 'sections' }, kinds, h('div', { class: 'filters' }, items.length > 1 && labelled('Server', select(items.map((it) => [it.name, it.name]), filter.server, (value) => { filter.server = value; load(); })),
      h('div', { class: 'wide' }, labelled('Search ( / )', search_)), labelled('State', states)), result));
    load();
  }, (error) => shown.fail(error));
  return [heading('Tools', { beside: summary }), shown.node];
}
