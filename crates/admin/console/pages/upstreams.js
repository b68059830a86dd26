// All upstreams.
import { poll } from '../api.js';
import { empty, heading, loading } from '../widgets.js';
import { plural } from '../text.js';
import { h, setText } from '../dom.js';
import { upstreamTable } from './upstream_table.js';

export const title = 'Upstreams';

/** @param {import('../app.js').Context} context */
export function page({ until }) {
  const shown = loading();
  const table = upstreamTable();
  const summary = h('span', { class: 'muted' });
  const none = empty('No upstreams', 'This process serves its own tools. Add [upstreams.NAME] to the configuration to put other servers behind it.');
  poll('/upstreams', 1000, until, ({ items }) => {
    const ready = items.filter((it) => it.state === 'ready').length;
    setText(summary, items.length ? `${ready} of ${plural(items.length, 'upstream')} ready` : '');
    table.update(items);
    table.node.hidden = items.length === 0;
    none.hidden = items.length > 0;
    shown.show(() => [table.node, none]);
  }, (error) => shown.fail(error));
  return [heading('Upstreams', { beside: summary }), shown.node];
}
