// The configuration as it was read, with the errors of a refused reload in place. Nothing can be edited here.
import { h, fill } from '../dom.js';
import { poll } from '../api.js';
import { copyButton, empty, facts, heading, labelled, loading, message, moment, section, select, state, table, tag } from '../widgets.js';
import { count } from '../text.js';

export const title = 'Config';

/** @param {string} text @param {any[]} diagnostics @param {number} target */
function source(text, diagnostics, target) {
  const lines = text.replace(/\n$/, '').split('\n');
  return h('ol', { class: 'source panel', 'aria-label': 'Configuration' }, lines.map((line, index) => {
    const found = diagnostics.filter((it) => it.line === index + 1);
    const kind = /^\s*#/.test(line) ? 'comment' : /^\s*\[/.test(line) ? 'head' : '';
    return h('li', { class: [found.length ? 'marked' : '', index + 1 === target ? 'target' : ''].join(' ').trim(), id: `line-${index + 1}` }, h('span', { class: kind }, line || ' '),
      found.map((it) => h('span', { class: 'why' }, message(`Column ${it.column}: ${it.message}${it.help ? ` – ${it.help}` : ''}`))));
  }));
}

function banner(config) {
  if (!config.refused && !config.diagnostics?.length) return h('div', { class: 'notice good' }, h('div', { class: 'row' }, state('ready', 'Accepted'), h('span', { class: 'muted' }, 'loaded ', moment(config.loaded))));
  const list = (config.diagnostics ?? []).map((it) => h('li', null, it.line ? h('a', { href: `#/config?line=${it.line}` }, `Line ${it.line}, column ${it.column}`) : 'The file', message(`: ${it.message}${it.help ? ` – ${it.help}` : ''}`)));
  return h('div', { class: 'notice bad', role: 'alert' }, h('p', { class: 'notice-title' }, 'The last reload was refused: the process runs with the configuration before it'), h('ul', null, list),
    h('p', null, 'Correct the file, then send SIGHUP or wait for the next change of the file.'));
}

/** @param {import('../app.js').Context} context */
export function page({ query, until }) {
  const shown = loading();
  const body = h('div', { class: 'sections' });
  const target = Number(query.get('line') ?? 0);
  let view = '';
  let drawn = '';
  const draw = (config) => {
    const { refused } = config;
    const isRefused = refused && view !== 'running';
    const text = isRefused ? refused.text : config.text;
    const { node, body: rows, row } = table('Effective values', [['Key', 'key'], 'Value', ['From', 'fit']]);
    rows.append(...(config.effective ?? []).map((it) => row([h('code', null, it.path.split(/(?<=[._])/).flatMap((part) => [part, h('wbr')])), h('code', null, typeof it.value === 'string' ? it.value : JSON.stringify(it.value)), it.from === 'default' ? h('span', { class: 'muted' }, 'default') : tag(it.from)])));
    const choice = refused && labelled('File', select([['', 'as refused'], ['running', 'as it runs']], view, (value) => { view = value; draw(config); }));
    fill(body, banner(config),
      config.restart_needed?.length > 0 && h('div', { class: 'notice warn' }, h('p', { class: 'notice-title' }, 'These changes need a restart'), h('ul', null, config.restart_needed.map((it) => h('li', null, h('code', null, it))))),
      facts([['File', config.file ? h('span', { class: 'mono' }, config.file) : 'none: command line only'], ['Digest', h('code', { title: config.digest }, (config.digest ?? '').slice(0, 16))], ['Loaded', moment(config.loaded)], ['Reloads', config.reloads && `${count(config.reloads.accepted)} accepted, ${count(config.reloads.refused)} refused`]]),
      h('div', { class: 'columns' }, section(isRefused ? 'Refused file' : 'File', choice && h('div', { class: 'filters' }, choice),
        text === undefined ? empty('No file', 'The process was started from the command line alone.') : [source(text, isRefused || !refused ? config.diagnostics ?? [] : [], target), h('div', null, copyButton(() => text, 'Copy'))]),
      config.effective?.length > 0 && section('Effective values', node)));
    shown.show(() => body);
    if (target && drawn === '') queueMicrotask(() => document.getElementById(`line-${target}`)?.scrollIntoView({ block: 'center' }));
  };
  poll('/config', 5000, until, (config) => { const text = JSON.stringify(config); if (text !== drawn) { draw(config); drawn = text; } }, (error) => shown.fail(error));
  return [heading('Config', { lead: 'Read only: what runs is what the file says. Secrets are not shown.' }), shown.node];
}
