// Who was refused what, by which rule.
import { h, fill, keyed, setText } from '../dom.js';
import { poll } from '../api.js';
import { address, empty, heading, link, loading, moment, select, table, labelled } from '../widgets.js';
import { count, plural } from '../text.js';
import { auditTabs } from './audit.js';

export const title = 'Denials';

/** What refuses without being a layer of a chain. */
const LAYERS = /** @type {Record<string, string>} */ ({ auth: 'credentials', guard: 'host or origin', scopes: 'scopes of the token' });

/** @param {string} label */
export function denialTable(label) {
  const { node, body, row } = table(label, [['Rule', 'key'], 'Caller', 'Target', ['Count', 'num'], ['Last', 'fit'], 'Reason']);
  const make = (it) => {
    const rule = `${LAYERS[it.layer] ?? it.layer}${it.rule ? `: ${it.rule}` : ''}`;
    const number = h('span', null);
    const last = h('span', null);
    const line = row([it.line ? link(rule, address(['config'], { line: String(it.line) }), { title: `Line ${it.line} of the configuration` }) : rule, h('span', null, it.principal ?? ['unknown', it.remote && h('span', { class: 'sub' }, ` from ${it.remote}`)]), h('span', null, it.target || '–', it.method && h('span', { class: 'sub' }, ` ${it.method}`)), number, last, it.reason ?? '']);
    const update = (next) => { setText(number, count(next.count)); fill(last, moment(next.last)); };
    update(it);
    return { node: line, update };
  };
  return { node, update: (items) => keyed(body, items, (it) => [it.layer, it.rule, it.principal, it.remote, it.target, it.method, it.server].join('\n'), make) };
}

const SPANS = /** @type {[string, string][]} */ ([['1', 'the last hour'], ['24', 'the last day'], ['', 'the start of the process']]);

/** @param {import('../app.js').Context} context */
export function page({ until, query, setQuery }) {
  const shown = loading();
  const denials = denialTable('Denials');
  const summary = h('span', { class: 'muted' });
  const none = empty('Nobody was refused anything', 'A refusal of a policy, a filter, a limit or of the sign-in of a client appears here.');
  let stop = new AbortController();
  const start = (hours) => {
    stop.abort();
    stop = new AbortController();
    const since = hours ? `&since=${encodeURIComponent(new Date(Date.now() - Number(hours) * 3_600_000).toISOString())}` : '';
    poll(`/denials?limit=500${since}`, 3000, AbortSignal.any([until, stop.signal]), (data) => {
      setText(summary, plural(data.total, 'refusal'));
      denials.update(data.items);
      denials.node.hidden = data.items.length === 0;
      none.hidden = data.items.length > 0;
      shown.show(() => [denials.node, none]);
    }, (error) => shown.fail(error));
  };
  const hours = query.get('hours') ?? '24';
  start(hours);
  return [heading('Denials', { beside: summary, lead: 'Calls and requests that this process refused, grouped by rule, caller and target. A rule links to its line in the configuration.' }), auditTabs('denials'),
    h('div', { class: 'filters' }, labelled('Since', select(SPANS, hours, (value) => { setQuery({ hours: value }); start(value); }))), shown.node];
}
