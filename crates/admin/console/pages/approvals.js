// Tools whose definition is not the approved one.
import { h, keyed, fill } from '../dom.js';
import { poll } from '../api.js';
import { address, empty, heading, link, loading, moment, state, table, tag } from '../widgets.js';
import { plural } from '../text.js';

export const title = 'Approvals';

export const riskTags = (pin) => h('span', { class: 'tags' }, (pin.risks ?? []).map((risk) => tag(risk.code.replaceAll('-', ' '), 'bad')));

/** @param {import('../app.js').Context} context */
export function page({ until, query }) {
  const shown = loading();
  const summary = h('span', { class: 'muted' });
  const all = query.get('all') === '1';
  const { node, body, row } = table('Approvals', [['Tool', 'key'], 'Upstream', ['State', 'fit'], ['Since', 'fit'], 'Risks']);
  const none = empty('Nothing waits for approval', 'Every tool is as it was approved. A tool whose definition changes is withheld from clients and appears here.', !all && link('Show approved tools', address(['approvals'], { all: '1' }), { class: 'button' }));
  const make = (pin) => {
    const line = row([link(pin.tool, address(['approvals', pin.upstream, pin.tool])), pin.upstream, '', '', '']);
    const update = (next) => {
      fill(line.children[2], state(next.rejected ? 'rejected' : next.state));
      fill(line.children[3], moment(next.since));
      fill(line.children[4], riskTags(next));
    };
    update(pin);
    return { node: line, update };
  };
  poll('/pins', 2000, until, ({ items }) => {
    const wanted = items.filter((pin) => all || pin.state !== 'approved');
    const waiting = items.filter((pin) => pin.state === 'withheld').length;
    fill(summary, items.length ? `${waiting} withheld, ${plural(items.length, 'tool')} pinned` : '');
    keyed(body, wanted, (pin) => `${pin.upstream}\n${pin.tool}`, make);
    node.hidden = wanted.length === 0;
    none.hidden = wanted.length > 0;
    shown.show(() => [node, none]);
  }, (error) => shown.fail(error));
  return [heading('Approvals', { beside: summary, lead: 'A tool that changed after its approval is not served until somebody has read the change.', actions: all && link('Only what waits', '#/approvals', { class: 'button' }) }), shown.node];
}
