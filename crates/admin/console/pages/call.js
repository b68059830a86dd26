// One call: its timeline, and what was said on both sides.
import { h, fill, set } from '../dom.js';
import { get, poll } from '../api.js';
import { span } from '../charts.js';
import { parse, stringify } from '../json.js';
import { argumentsOf, offer } from '../tries.js';
import { clock, dateTime, duration } from '../text.js';
import { address, copyButton, empty, facts, heading, link, loading, section, table, tag } from '../widgets.js';
import { eras, outcome } from './calls.js';
import { comparison } from './compare.js';

export const title = 'Call';

const TRANSLATIONS = /** @type {Record<string, string>} */ ({ none: 'none', raised: 'raised to the newer revision', lowered: 'lowered to the older revision', parked: 'parked between the rounds', driven: 'driven by this process' });

function describe(step) {
  switch (step.kind) {
    case 'layer': return [`layer ${step.layer}`, '', step.decision + (step.attempts > 1 ? `, ${step.attempts} attempts` : '')];
    case 'upstream_request': return [`upstream ${step.upstream}`, `${step.method} ${step.target ?? ''}`, [step.revision, step.translation && step.translation !== 'none' ? step.translation : '', step.code === undefined ? '' : `code ${step.code}`].filter(Boolean).join(', ')];
    case 'input_request': return ['asks the client', step.input, `round ${step.round}`];
    case 'parked': return ['parked', 'waits for the client', step.end ?? ''];
    case 'upstream_start': return [`starts ${step.upstream}`, '', `attempt ${step.attempt}`];
    default: return [step.kind, '', ''];
  }
}

function timeline(call) {
  const whole = Math.max(call.duration_ms ?? 0, ...(call.steps ?? []).map((it) => it.start_ms + it.duration_ms));
  const { node, body, row } = table('Timeline', [['Step', 'key'], 'What', 'How', ['Took', 'num'], ['When', 'bar-cell']]);
  node.classList.add('steps');
  body.append(row(['call', `${call.method} ${call.target}`, (call.outcome ?? 'in flight').replaceAll('_', ' '), duration(call.duration_ms), span('call', 0, call.duration_ms ?? whole, whole)]));
  const depths = new Map();
  for (const step of call.steps ?? []) {
    const [name, what, how] = describe(step);
    depths.set(step.index, Math.min(6, (depths.get(step.parent) ?? 0) + 1));
    body.append(row([h('span', { class: `deep-${depths.get(step.index)}` }, name), what, [how, step.error && h('span', { class: 'bad' }, ` ${step.error}`)], duration(step.duration_ms), span(step.error || step.decision === 'refused' ? 'failed' : step.kind, step.start_ms, step.duration_ms, whole)]));
  }
  return node;
}

/** @param {any} call @param {boolean} mayAct */
function payloads(call, mayAct) {
  switch (call.payloads) {
    case 'captured': return comparison(call);
    case 'ended': return empty('The payloads are gone', 'The capture that kept them ended.');
    case 'forbidden': return empty('Payloads were captured', 'Reading them needs the role admin:operate.');
    default: return empty('No payloads were kept', 'Requests and results are kept only while a capture runs.', mayAct && link('Start a capture', address(['calls'], { target: call.target }), { class: 'button' }));
  }
}

function summary(call) {
  const client = call.client && `${call.client.name} ${call.client.version ?? ''}`;
  return facts([['Outcome', [outcome(call), call.code !== undefined && ` code ${call.code}`]], ['Took', duration(call.duration_ms)], ['Started', `${dateTime(call.started)}${clock(call.started).slice(8)}`], ['Caller', call.principal], ['Client', client],
    ['Server → upstream', call.upstream ? h('span', null, `${call.server} → `, link(call.upstream, address(['upstreams', call.upstream]))) : call.server], ['Revisions', eras(call)], ['Translation', call.translation && TRANSLATIONS[call.translation]],
    ['Refused by', call.denied_by], ['Transport', call.transport], ['Through', call.via !== 'mcp' && call.via], ['Request id', call.request_id], ['Session', call.session && h('code', null, call.session)], ['From', call.remote], ['Trace', call.trace && h('span', { class: 'row' }, h('code', { class: 'wrap' }, call.trace), copyButton(() => call.trace))],
    ['Other rounds', call.rounds?.length > 0 && call.rounds.map((id) => [link(id.slice(0, 8), address(['calls', id])), ' '])]]);
}

const GIVEN = /** @type {Record<string, string>} */ ({ captured: 'with the arguments of the captured request', redacted: 'with the arguments of the captured request, in which secrets are hidden', tab: 'with the arguments that this tab sent', unknown: 'without its arguments, which are not known: no capture kept them' });

/** Leads to Try, with the arguments if they are known. @param {any} call @param {AbortSignal} until */
function runAgain(call, until) {
  const given = argumentsOf(call, parse, stringify);
  const kind = call.method === 'tools/call' ? 'tool' : 'prompt';
  const again = link('Run again in Try', address(['tools'], { server: call.server, q: call.target, kind: kind === 'tool' ? '' : kind }), { class: 'button', title: `Opens Try ${GIVEN[given.from]}` });
  get(`/servers/${encodeURIComponent(call.server)}/items?kind=${kind}&q=${encodeURIComponent(call.target)}&limit=500`, { until }).then(({ items }) => {
    const item = items.find((it) => it.name === call.target);
    if (!item) return;
    set(again, 'href', address(['try', item.id], { server: call.server, revision: call.revision, again: call.id }));
    again.addEventListener('click', () => offer(call.id, given));
  }, () => {});
  return { again, hint: `“Run again” opens Try ${GIVEN[given.from]}.` };
}

/** @param {import('../app.js').Context} context */
export function page({ path: [id], until, may, setTitle }) {
  const shown = loading();
  const head = h('div', null, heading(`Call ${id.slice(0, 8)}`, { above: link('Calls', '#/calls') }));
  const body = h('div', { class: 'sections' });
  let drawn = '';
  const stop = new AbortController();
  poll(`/calls/${encodeURIComponent(id)}`, 1000, AbortSignal.any([until, stop.signal]), (call) => {
    const text = JSON.stringify(call);
    if (text !== drawn) {
      drawn = text;
      setTitle(`${call.method} ${call.target}`);
      const rounds = (call.rounds?.length ?? 0) + 1;
      const { again, hint } = may('operate') && ['tools/call', 'prompts/get'].includes(call.method) && runAgain(call, until) || { again: null, hint: '' };
      fill(head, heading(call.target || call.method, { above: [link('Calls', '#/calls'), ` / ${id.slice(0, 8)}`], beside: [outcome(call), tag(call.method), call.translation === 'parked' && tag(`parked, ${rounds} round${rounds === 1 ? '' : 's'}`, 'warn')], actions: again, lead: hint }));
      fill(body, summary(call), section('Timeline', timeline(call)), section('Both sides', payloads(call, may('operate'))));
      shown.show(() => body);
    }
    if (call.state === 'ended' && call.payloads !== 'captured') stop.abort();
  }, (error) => { fill(body); drawn = ''; shown.fail(error); });
  return [head, shown.node];
}
