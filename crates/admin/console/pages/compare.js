// What the client and the upstream said, side by side, compared member by member.
import { h } from '../dom.js';
import { differences } from '../diff.js';
import { parse, stringify } from '../json.js';
import { bytes, duration } from '../text.js';
import { copyButton, section } from '../widgets.js';

function read(frame) {
  try { return { value: parse(frame.text) }; } catch { return { value: undefined }; }
}

const MEANINGS = /** @type {[RegExp, string][]} */ ([
  [/^\/id$/, 'each side counts its own requests'],
  [/^\/params\/_meta\/io\.modelcontextprotocol~1/, 'the stateless era sends version, client and capabilities with each request; a session said them once'],
  [/^\/params\/_meta(\/|$)/, '_meta: metadata of each side'],
  [/^\/params\/name$/, 'the upstream knows the tool by its own name'],
  [/^\/result\/(resultType|inputRequests|requestState)/, 'results of 2026-07-28 say whether input is required'],
  [/^\/result\/_meta/, '_meta of the result'],
  [/^\/method$/, 'another method of the other revision'],
  [/\/(icons|title|outputSchema|structuredContent|annotations)(\/|$)/, 'the older revision does not know this member'],
]);

/** @param {import('../diff.js').Difference} it */
function rule(it) {
  const meaning = MEANINGS.find(([pattern]) => pattern.test(it.pointer))?.[1];
  const what = it.change === 'added' ? 'added' : it.change === 'removed' ? 'removed' : `${short(it.before)} → ${short(it.after)}`;
  return h('li', null, h('code', null, it.pointer || '/'), ` ${what}`, meaning && h('span', { class: 'muted' }, ` – ${meaning}`));
}

const short = (value) => { const text = stringify(value); return text.length > 60 ? `${text.slice(0, 60)}…` : text; };

/** The lines of a value with the signs of its differences. @param {any} value @param {Map<string, string>} changes @param {string} side */
function lines(value, changes, side) {
  /** @type {{ sign: string, text: string }[]} */
  const out = [];
  const write = (it, pointer, before, after, sign, depth) => {
    const own = changes.get(pointer) ?? sign;
    const margin = '  '.repeat(depth);
    const isList = Array.isArray(it);
    const entries = it instanceof Map ? [...it] : isList ? it.map((item, index) => [String(index), item]) : null;
    if (!entries || entries.length === 0) { out.push({ sign: own, text: margin + before + stringify(it) + after }); return; }
    out.push({ sign: own, text: margin + before + (isList ? '[' : '{') });
    entries.forEach(([name, item], index) => write(item, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, isList ? '' : `${JSON.stringify(name)}: `, index + 1 < entries.length ? ',' : '', own, depth + 1));
    out.push({ sign: own, text: margin + (isList ? ']' : '}') + after });
  };
  write(value, '', '', '', '', 0);
  const kinds = /** @type {Record<string, [string, string, string]>} */ ({ removed: ['−', 'gone', 'only here'], added: ['+', 'come', 'only here'], changed: ['±', 'other', 'different'] });
  return h('div', { class: 'lines', tabindex: '0', role: 'region', 'aria-label': side }, out.map(({ sign, text }) => {
    const kind = kinds[sign];
    return h('div', { class: `line ${kind?.[1] ?? ''}` }, h('span', { class: 'sign' }, kind ? [h('span', { 'aria-hidden': 'true' }, kind[0]), h('span', { class: 'unseen' }, `${kind[2]}: `)] : ''), h('span', null, text));
  }));
}

/** @param {any} frame @param {string} title @param {any} value @param {Map<string, string>} changes */
const column = (frame, title, value, changes) => h('div', { class: 'block' }, h('header', null, h('span', null, title), h('span', null, `${bytes(frame.bytes)}, after ${duration(frame.at_ms)}`), frame.redacted && h('span', null, 'redacted'), frame.truncated && h('span', { class: 'warn' }, 'cut'), h('span', { class: 'end' }, copyButton(() => frame.text))),
  value === undefined ? h('pre', null, frame.text) : lines(value, changes, title));

/** The client is left, the upstream right. A request changes to the right, a response to the left. @param {any} left @param {any} right @param {string} leftTitle @param {string} rightTitle @param {boolean} isSame @param {boolean} isResponse */
function pair(left, right, leftTitle, rightTitle, isSame, isResponse) {
  const [a, b] = [left && read(left).value, right && read(right).value];
  const found = a === undefined || b === undefined ? [] : isResponse ? differences(b, a) : differences(a, b);
  const [gone, come] = isResponse ? ['added', 'removed'] : ['removed', 'added'];
  const signs = (kind) => new Map(found.filter((it) => it.change === kind || it.change === 'changed').map((it) => [it.pointer, it.change]));
  return h('div', { class: 'stack' }, h('div', { class: 'compare' }, left && column(left, leftTitle, a, signs(gone)), right && column(right, rightTitle, b, signs(come))),
    left && right && h('div', { class: 'panel stack' }, isSame && h('p', { class: 'good' }, '= arguments and result: same bytes'), found.length ? h('ul', { class: 'rules' }, found.map(rule)) : h('p', { class: 'muted' }, 'Both sides say the same.')));
}

export function comparison(call) {
  const frames = call.frames ?? [];
  const of = (side) => frames.filter((it) => it.side === side);
  const [clientIn, upstreamOut, upstreamIn, clientOut] = ['client_in', 'upstream_out', 'upstream_in', 'client_out'].map(of);
  const same = (one, other) => one && other && (one.same_as === frames.indexOf(other) || other.same_as === frames.indexOf(one));
  const client = (way) => `${way} (${call.revision})`;
  const parts = [];
  const requests = Math.max(clientIn.length, upstreamOut.length, 0);
  for (let index = 0; index < requests; index += 1) {
    const [left, right] = [clientIn[index], upstreamOut[index]];
    parts.push(section(requests > 1 ? `Request ${index + 1}` : 'Request', pair(left, right, client('Client → Creole'), `Creole → ${right?.upstream ?? call.upstream ?? 'upstream'} (${call.upstream_revision ?? call.revision})`, same(left, right), false)));
  }
  const answers = Math.max(clientOut.length, upstreamIn.length, 0);
  for (let index = 0; index < answers; index += 1) {
    const [left, right] = [clientOut[clientOut.length - answers + index], upstreamIn[upstreamIn.length - answers + index]];
    parts.push(section(answers > 1 ? `Response ${index + 1}` : 'Response', pair(left, right, client('Creole → client'), `${right?.upstream ?? call.upstream ?? 'upstream'} → Creole (${call.upstream_revision ?? call.revision})`, same(left, right), true)));
  }
  return h('div', { class: 'sections' }, parts.length ? parts : h('p', { class: 'muted' }, 'The capture has no frame of this call.'));
}
