// The table of upstreams, on two pages.
import { h, keyed, fill } from '../dom.js';
import { address, link, setMessage, state, table } from '../widgets.js';
import { count, duration } from '../text.js';

/** What an upstream waits for. @param {any} it */
export function note(it) {
  if (it.state === 'backoff' && it.next_start_ms !== undefined) return `next start in ${Math.ceil(it.next_start_ms / 1000)} s${it.note ? `: ${it.note}` : ''}`;
  return it.note ?? (it.items?.withheld ? `${count(it.items.withheld)} withheld` : '');
}

export function upstreamTable() {
  const columns = /** @type {[string, string][]} */ ([['Upstream', 'key'], ['State', 'fit'], ['Era', ''], ['Version', 'nowrap'], ['p95', 'num'], ['Calls', 'num'], ['Errors', 'num'], ['Items', 'num'], ['Note', '']]);
  const { node, body, row } = table('Upstreams', columns);
  const make = (it) => {
    const cells = columns.map(() => h('span', null));
    fill(cells[0], link(it.name, address(['upstreams', it.name])));
    const line = row(cells);
    let shown = '';
    const update = (next) => {
      if (shown !== next.state) { fill(cells[1], state(next.state)); shown = next.state; }
      const items = next.items ?? {};
      [null, null, next.era ?? '–', next.revision ?? '–', duration(next.p95_ms), count(next.calls), count(next.errors), count((items.tools ?? 0) + (items.resources ?? 0) + (items.resource_templates ?? 0) + (items.prompts ?? 0)), note(next)]
        .forEach((text, index) => { if (text !== null) setMessage(cells[index], text); });
    };
    update(it);
    return { node: line, update };
  };
  return { node, update: (items) => keyed(body, items, (it) => it.name, make) };
}
