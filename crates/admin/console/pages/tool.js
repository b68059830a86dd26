// One item: what each client sees of it.
import { h, fill } from '../dom.js';
import { getExact } from '../api.js';
import { differences } from '../diff.js';
import { stringify } from '../json.js';
import { schemaTree } from '../json_view.js';
import { bytes, count } from '../text.js';
import { address, copyButton, facts, heading, labelled, link, loading, section, select, state } from '../widgets.js';
import { hintTags } from './tools.js';

export const title = 'Tool';

const plain = (value) => value === undefined ? undefined : JSON.parse(stringify(value));

/** The definition for one revision, with what differs from the newest. @param {any} newest @param {any} seen */
function marked(newest, seen) {
  const changes = differences(newest, seen.get('definition')).map((it) => h('li', null, h('code', null, it.pointer || '/'), ` ${it.change === 'removed' ? 'is left out' : it.change === 'added' ? 'is added' : 'is changed'}`));
  return [changes.length ? h('div', { class: 'notice busy' }, h('p', { class: 'notice-title' }, 'Different from the newest revision'), h('ul', null, changes)) : h('p', { class: 'muted' }, 'Nothing differs from the newest revision.'),
    h('pre', { class: 'panel', tabindex: '0' }, stringify(seen.get('definition'), 2))];
}

/** @param {import('../app.js').Context} context */
export function page({ path: [id], query, until, may, setTitle }) {
  const shown = loading();
  const head = h('div', null, heading('Tool', { above: link('Tools', '#/tools') }));
  getExact(`/items/${encodeURIComponent(id)}`, { until }).then((item) => {
    const it = plain(new Map([...item].filter(([name]) => name !== 'definition' && name !== 'announced')));
    const definition = item.get('definition');
    const announced = item.get('announced') ?? [];
    setTitle(it.name);
    const server = query.get('server') ?? '';
    const canTry = may('operate') && it.state === 'listed' && it.kind !== 'resource_template';
    fill(head, heading(it.name, { above: link('Tools', address(['tools'], { server, kind: it.kind === 'tool' ? '' : it.kind })), beside: [state(it.state), hintTags(it.hints)], lead: it.title !== it.name && it.title,
      actions: canTry && link('Try', address(['try', id], { server }), { class: 'button primary' }) }));
    const parts = [];
    if (it.reason) parts.push(h('div', { class: 'notice warn' }, h('p', { class: 'notice-title' }, it.reason), it.state === 'withheld' && link('Look at the change', '#/approvals')));
    parts.push(facts([['From', it.origin === 'server' ? 'this process' : link(it.origin, address(['upstreams', it.origin]))], ['Name there', it.original_name !== it.name && it.original_name], ['Size', `${bytes(it.bytes)}, about ${count(it.tokens)} tokens (bytes / 4)`], ['Pin', it.pin !== 'none' && state(it.pin)]]));
    parts.push(section('Description', it.description ? h('p', { class: 'panel prose' }, it.description) : h('p', { class: 'muted' }, 'It has none. A model only knows the name.')));
    const input = definition?.get?.('inputSchema');
    const output = definition?.get?.('outputSchema');
    if (input) parts.push(h('div', { class: 'columns' }, section('Arguments', h('div', { class: 'panel' }, schemaTree(input))), output && section('Result', h('div', { class: 'panel' }, schemaTree(output)))));
    if (announced.length > 0) {
      const out = h('div', { class: 'stack' });
      const newest = announced.at(-1).get('definition');
      const show = (revision) => fill(out, marked(newest, announced.find((one) => one.get('revision') === revision)));
      const revisions = announced.map((one) => one.get('revision'));
      const choice = select(revisions.map((one) => [one, one]), revisions.at(-1), show);
      show(revisions.at(-1));
      parts.push(section('As a client sees it', h('div', { class: 'filters' }, labelled('Revision of the client', choice), h('div', null, copyButton(() => out.querySelector('pre').textContent, 'Copy the definition'))), out));
    } else if (definition) parts.push(section('Definition', h('pre', { class: 'panel', tabindex: '0' }, stringify(definition, 2))));
    shown.show(() => h('div', { class: 'sections' }, parts));
  }, (error) => shown.fail(error));
  return [head, shown.node];
}
