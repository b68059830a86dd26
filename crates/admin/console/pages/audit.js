// Search in the audit log.
import { h, fill } from '../dom.js';
import { get, getText } from '../api.js';
import { tree } from '../json_view.js';
import { button, copyButton, empty, failure, heading, labelled, save, select, state, table, tabs } from '../widgets.js';
import { bytes, dateTime, duration, hidden, plural } from '../text.js';

export const title = 'Audit';

/** @param {string} current */
export const auditTabs = (current) => tabs('Records', [{ name: 'Audit log', href: '#/audit', current: current === 'audit' }, { name: 'Denials', href: '#/denials', current: current === 'denials' }]);

/** The first of these members that a line has. @param {any} line @param {string[]} names */
const member = (line, ...names) => names.map((name) => line[name]).find((value) => value !== undefined && typeof value !== 'object');
/** A member that may be a text or an object with a name. @param {any} value */
const nameOf = (value) => typeof value === 'object' && value !== null ? value.name ?? value.kind ?? '' : value ?? '';
const OUTCOMES = /** @type {[string, string][]} */ ([['', 'all'], ['ok', 'ok'], ['error', 'error result'], ['fault', 'fault'], ['asked', 'asked for input'], ['detached', 'became a task'], ['cancelled', 'cancelled'], ['started', 'started']]);

/** @param {any} line @param {string | undefined} traceUrl */
function expanded(line, traceUrl) {
  const trace = member(line, 'trace', 'trace_id');
  const url = trace && traceUrl?.replace('{trace}', encodeURIComponent(trace));
  return h('div', { class: 'stack' }, tree(line, 4), h('div', { class: 'actions' }, copyButton(() => JSON.stringify(line), 'Copy the line'), url && h('span', { class: 'row' }, h('code', { class: 'wrap' }, url), copyButton(() => url, 'Copy the address of the trace'))));
}

/** @param {import('../app.js').Context} context */
export function page({ query, setQuery, until, may, self }) {
  const head = [heading('Audit', { lead: 'One line for each call and for each look at payloads, as it was written.' }), auditTabs('audit')];
  if (!may('approve')) return [...head, empty('The audit log needs another role', 'Search needs admin:approve. Denials can be read with your role.')];
  const names = ['principal', 'tool', 'outcome', 'since', 'until', 'trace', 'q'];
  const filter = Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']));
  const result = h('div', { class: 'stack' });
  const summary = h('p', { class: 'muted', 'aria-live': 'polite' });
  const { node, body, row } = table('Audit lines', [['Time', 'fit'], 'Caller', 'Method', ['Target', 'key'], ['Outcome', 'fit'], ['Took', 'num'], ['', 'fit']]);
  const search = (cursor) => {
    const given = Object.entries(filter).filter((entry) => entry[1]).map(([name, value]) => [name, ['since', 'until'].includes(name) ? new Date(value).toISOString() : value]);
    return new URLSearchParams([...given, ['limit', '100'], ...cursor ? [['cursor', cursor]] : []]);
  };
  const add = (line) => {
    const outcome = String(nameOf(line.outcome) || '–');
    const more = h('tr', { role: 'row', hidden: true }, h('td', { role: 'cell', colspan: '7' }, expanded(line, self.trace_url)));
    const toggle = button('Open', () => { more.hidden = !more.hidden; toggle.setAttribute('aria-expanded', String(!more.hidden)); }, { class: 'small', 'aria-expanded': 'false' });
    body.append(row([dateTime(member(line, 'time', 'at', 'timestamp', 'started')), nameOf(line.principal) || '–', String(member(line, 'method', 'operation') ?? '–'), String(member(line, 'target', 'tool', 'name', 'uri') ?? '–'), state(outcome), duration(line.durationUs === undefined ? undefined : line.durationUs / 1000), toggle]), more);
  };
  let run = 0;
  const load = async (cursor = '') => {
    run += 1;
    const mine = run;
    setQuery(filter);
    if (!cursor) fill(summary, 'Searching…');
    try {
      const answer = await get(`/audit?${search(cursor)}`, { until });
      if (mine !== run) return;
      if (!cursor) body.replaceChildren();
      answer.items.forEach(add);
      const lines = body.children.length / 2;
      fill(summary, `${plural(lines, 'line')}${answer.next ? ' so far' : ''}, ${bytes(answer.searched_bytes)} searched${answer.complete === false ? '. The search reached its limit of a page; go on for older lines' : ''}`);
      fill(result, lines > 0 ? node : !answer.next && empty('No line matches', 'Change the filters, or remove one.'), answer.next && h('div', null, button(answer.complete === false ? 'Search on' : 'Show more', () => load(answer.next))));
    } catch (error) {
      if (until.aborted || mine !== run) return;
      fill(summary);
      const isAbsent = /** @type {any} */ (error).status === 409;
      fill(result, isAbsent ? empty('No audit file is configured', 'Add a layer of the kind audit with a file to the chain of a server. Lines that go to stdout or to OpenTelemetry are searched there.') : failure(error, () => load()));
    }
  };
  const field = (name, label, type) => labelled(label, h('input', { type, value: hidden.inline(filter[name]), spellcheck: 'false', on: { change: (event) => { filter[name] = event.target.value; } } }));
  const exported = async () => {
    try { save('audit.ndjson', [await getText(`/audit?${search('')}`, { accept: 'application/x-ndjson', until })], 'application/x-ndjson'); } catch (error) { if (!until.aborted) fill(result, failure(error)); }
  };
  const form = h('form', { class: 'filters', on: { submit: (event) => { event.preventDefault(); queueMicrotask(() => load()); } } },
    h('div', { class: 'wide' }, field('q', 'Text ( / )', 'search')), field('principal', 'Caller', 'text'), field('tool', 'Tool', 'text'), labelled('Outcome', select(OUTCOMES, filter.outcome, (value) => { filter.outcome = value; })),
    field('since', 'From', 'datetime-local'), field('until', 'To', 'datetime-local'), field('trace', 'Trace', 'text'), h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' }, 'Search'), button('Export', exported)));
  load();
  return [...head, form, summary, result];
}
