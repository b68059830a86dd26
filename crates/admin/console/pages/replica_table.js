// The table of the replicas that share the state.
import { h, fill, keyed, setText } from '../dom.js';
import { moment, table } from '../widgets.js';

export function replicaTable() {
  const { node, body, row } = table('Replicas', [['Replica', 'key'], ['Version', 'nowrap'], ['Started', 'fit'], ['Configuration', 'nowrap'], 'Note']);
  /** @type {any} The replica that answers. */
  let own = null;
  /** @param {any} it */
  const note = (it) => it.self ? 'this one' : it.config === own.config ? '' : 'another configuration';
  /** @param {any} it */
  const make = (it) => {
    const [started, config, about] = [h('span', null), h('code', null), h('span', null)];
    const update = (next) => { fill(started, moment(next.started)); setText(config, next.config.slice(0, 8) || '–'); setText(about, note(next)); };
    update(it);
    return { node: row([it.name.slice(0, 8), it.version, started, config, about]), update };
  };
  /** @param {any[]} items */
  const update = (items) => { own = items[0]; keyed(body, items, (it) => it.name, make); };
  return { node, update };
}
