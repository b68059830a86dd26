// One changed tool: the difference, what is risky about it, and the decision.
import { h, fill } from '../dom.js';
import { change, get } from '../api.js';
import { differences, wordDifferences } from '../diff.js';
import { parse, stringify } from '../json.js';
import { ask, button, failure, heading, link, loading, moment, say, section, state } from '../widgets.js';

export const title = 'Approval';

/** @param {string} before @param {string} after */
const wordDiff = (before, after) => wordDifferences(before, after).map(({ kind, text }) => h(kind === 'gone' ? 'del' : kind === 'come' ? 'ins' : 'span', null, text));

const shownText = (value) => typeof value === 'string' ? value : stringify(value, 2);

/** @param {import('../diff.js').Difference} it @param {any[]} risks */
function member(it, risks) {
  const own = risks.filter((risk) => risk.member === it.pointer || it.pointer.startsWith(`${risk.member}/`));
  const words = it.change === 'changed' && typeof it.before === 'string' && typeof it.after === 'string';
  const signs = { added: '+ added', removed: '− removed', changed: '± changed', same: '= same' };
  return h('div', { class: 'block' }, h('header', null, h('code', null, it.pointer || '/'), h('span', null, signs[it.change]), own.map((risk) => h('span', { class: 'tag bad' }, risk.text ?? risk.code))),
    h('div', { class: 'stack' }, words ? h('p', { class: 'prose' }, wordDiff(it.before, it.after))
      : [it.before !== undefined && h('pre', null, h('del', null, shownText(it.before))), it.after !== undefined && h('pre', null, h('ins', null, shownText(it.after)))]));
}

/** @param {import('../app.js').Context} context */
export function page({ path: [upstream, tool], until, may, setTitle }) {
  setTitle(`${tool} of ${upstream}`);
  const shown = loading();
  const body = h('div', { class: 'sections' });
  const trouble = h('div', { 'aria-live': 'assertive' });
  const base = `/pins/${encodeURIComponent(upstream)}/${encodeURIComponent(tool)}`;
  /** @type {any} */
  let pin = null;

  const load = async () => {
    try {
      pin = await get(base, { until });
      draw();
    } catch (error) { if (!until.aborted) shown.fail(error, load); }
  };
  const draw = () => {
    const changes = pin.approved && pin.present ? differences(parse(pin.approved), parse(pin.present)) : [];
    const risks = pin.risks ?? [];
    fill(body, h('p', { class: 'row' }, state(pin.rejected ? 'rejected' : pin.state), h('span', { class: 'muted' }, moment(pin.since)), h('span', { class: 'muted' }, 'digest ', h('code', null, (pin.sha256 ?? '').slice(0, 16)))),
      risks.length > 0 && h('div', { class: 'notice bad' }, h('p', { class: 'notice-title' }, 'Read this before you approve'), h('ul', null, risks.map((risk) => h('li', null, risk.member && [h('code', null, risk.member), ' '], risk.text ?? risk.code)))),
      changes.length > 0 ? section('What changed', changes.map((it) => member(it, risks)))
        : section(pin.approved ? 'Definition' : 'New definition', pin.approved && h('p', { class: 'muted' }, 'The present definition is the approved one.'), h('pre', { class: 'panel', tabindex: '0' }, pin.present ? stringify(parse(pin.present), 2) : 'The upstream does not have it now.')));
    fill(actions, may('approve') && pin.state !== 'approved' && pin.present ? [button('Reject', () => decide('reject')), button('Approve…', () => decide('approve'), { class: 'primary' })] : []);
    shown.show(() => body);
  };
  const decide = async (verb) => {
    const digest = pin.sha256;
    if (verb === 'approve' && !await ask(`Approve ${tool}?`, 'Clients and their models get the new definition at once.', 'Approve', tool)) return;
    try {
      await change('POST', `${base}/${verb}`, { sha256: digest });
      fill(trouble, h('div', { class: 'notice good' }, h('p', null, verb === 'approve' ? 'Approved: the tool is served again.' : 'Rejected: the tool stays withheld.'), link('Approvals', '#/approvals')));
      say(verb === 'approve' ? 'Approved' : 'Rejected');
    } catch (error) {
      if (/** @type {any} */ (error).status === 412) fill(trouble, h('div', { class: 'notice warn', role: 'alert' }, h('p', { class: 'notice-title' }, 'The tool changed again'), h('p', null, 'Nothing was approved. What you see now is the newest definition.')));
      else fill(trouble, failure(error));
    }
    load();
  };
  const actions = h('div', { class: 'actions' });
  load();
  return [heading(tool, { above: [link('Approvals', '#/approvals'), ' / ', upstream], actions }), trouble, shown.node];
}
