// Runs one tool, prompt or resource as a client of any revision. Form and JSON follow each other; what is sent is what the JSON shows.
import { h, fill, setText } from '../dom.js';
import { getExact, get } from '../api.js';
import { ABSENT, field } from '../form.js';
import { JsonError, lossless, parse, stringify } from '../json.js';
import { missing, planOf } from '../schema.js';
import { noteCalls, offered, rememberTry, tries } from '../tries.js';
import { clock, hidden, shellWord } from '../text.js';
import { address, button, copyButton, empty, heading, labelled, link, loading, section, select } from '../widgets.js';
import { runPart } from './run.js';

export const title = 'Try';

/** What a client can say that it answers. */
const CAPABILITIES = /** @type {Record<string, object>} */ ({ elicitation: { form: {}, url: {} }, sampling: {}, roots: {} });

/** What to know about the arguments of a call that is run again. */
const GIVEN = /** @type {Record<string, string>} */ ({
  unknown: 'The arguments of the earlier call are not known: no capture kept them. Fill them in before you run it.',
  redacted: 'The arguments are those of the captured request. Secrets in them are hidden as •••: replace them before you run it.',
});

/** The schema of the arguments of an item. @param {any} item */
function schemaOf(item) {
  const definition = item.get('definition');
  const kind = item.get('kind');
  if (kind === 'tool') return definition?.get('inputSchema') ?? new Map([['type', 'object']]);
  const list = kind === 'prompt' ? definition?.get('arguments') ?? [] : [];
  const properties = new Map(list.map((it) => /** @type {[string, any]} */ ([it.get('name'), lossless({ type: 'string', maxLength: 4096, description: it.get('description') })])));
  const required = list.filter((it) => it.get('required') === true).map((it) => it.get('name'));
  return new Map(Object.entries({ type: 'object', properties, required, additionalProperties: false }));
}

const METHODS = /** @type {Record<string, string>} */ ({ tool: 'tools/call', prompt: 'prompts/get', resource: 'resources/read' });

/** What is sent. @param {any} item @param {any} values @param {string} revision @param {string[]} capabilities */
function request(item, values, revision, capabilities) {
  const kind = item.get('kind');
  const params = kind === 'resource' ? { uri: item.get('definition')?.get('uri') ?? item.get('name') } : { name: item.get('name'), arguments: values };
  return stringify({ method: METHODS[kind], params, as: { revision, capabilities: Object.fromEntries(capabilities.map((name) => [name, CAPABILITIES[name]])) } });
}

/** @param {any} item @param {string} server @param {any} context */
function tryPart(item, server, { until, self, query, revisions }) {
  const plan = planOf(schemaOf(item));
  const name = item.get('name');
  const again = offered(query.get('again'));
  const given = again?.args ?? query.get('args');
  const formSide = h('div', null);
  const problem = h('p', { class: 'bad', role: 'alert', id: 'json-problem' });
  const note = h('p', { class: 'warn', 'aria-live': 'polite' });
  const cli = h('code', null);
  let revision = query.get('revision') || revisions.at(-1);
  const capabilities = new Set(Object.keys(CAPABILITIES));
  /** @type {import('../form.js').Field} */
  let form;
  const editor = h('textarea', { class: 'code', id: 'json', spellcheck: 'false', rows: 14, 'aria-describedby': 'json-problem', on: { input: () => fromText() } });

  /** The arguments, or why they cannot be sent. @returns {{ value?: any, error?: string, at?: number }} */
  const read = () => {
    try {
      const value = parse(editor.value);
      return value instanceof Map ? { value } : { error: 'Line 1, column 1: the arguments must be an object', at: 0 };
    } catch (error) { return { error: /** @type {Error} */ (error).message, at: /** @type {JsonError} */ (error).at }; }
  };
  const draw = () => {
    const { value, error } = read();
    setText(problem, error ?? '');
    if (error) editor.setAttribute('aria-invalid', 'true'); else editor.removeAttribute('aria-invalid');
    const lacks = value ? missing(plan, value) : [];
    const wrong = form.problems();
    setText(note, wrong.length ? wrong.join('; ') : lacks.length ? `Required and not set: ${lacks.join(', ')}` : '');
    if (value) setText(cli, ['creole call', self.config?.file ? `--config ${shellWord(self.config.file)}` : '', `--server ${shellWord(server)}`, shellWord(name), `--revision ${revision}`, `--args ${shellWord(stringify(value))}`].filter(Boolean).join(' '));
  };
  const fromForm = () => { const value = form.get(); editor.value = stringify(value === ABSENT ? new Map() : value, 2); draw(); };
  const build = (value) => {
    form = field(plan, value, fromForm, { id: 'arguments' });
    fill(formSide, form.node);
  };
  const fromText = () => {
    const { value } = read();
    if (value) build(value);
    draw();
  };
  build(ABSENT);
  if (given !== null) { editor.value = given; fromText(); if (read().value) editor.value = stringify(read().value, 2); } else fromForm();

  const running = runPart(server, until, self);
  const run = () => {
    const { value, error, at } = read();
    const wrong = form.problems();
    if (error !== undefined || wrong.length > 0) {
      draw();
      setText(problem, error ?? wrong.join('; '));
      if (error) { editor.focus(); editor.setSelectionRange(at ?? 0, (at ?? 0) + 1); }
      return;
    }
    const time = new Date().toISOString();
    rememberTry({ id: item.get('id'), server, name, args: stringify(value), revision, at: time });
    running.start(request(item, value, revision, [...capabilities]), (calls) => noteCalls(time, calls));
    drawHistory();
  };
  const past = h('div', { class: 'stack' });
  const drawHistory = () => fill(past, tries().length === 0 ? h('p', { class: 'muted' }, 'Calls of this tab appear here.') : h('ul', { class: 'schema' }, tries().map((it) => h('li', { class: 'row' },
    h('span', { class: 'muted' }, clock(it.at).slice(0, 8)), it.id === item.get('id') ? button(it.name, () => { editor.value = stringify(parse(it.args), 2); fromText(); editor.focus(); }, { class: 'plain' }) : link(it.name, address(['try', it.id], { server: it.server, args: it.args, revision: it.revision })), h('code', { class: 'wrap clip' }, it.args)))));
  drawHistory();

  const act = h('div', { class: 'act' }, labelled('Act as a client of', select(revisions.map((it) => [it, it]), revision, (value) => { revision = value; draw(); })),
    h('fieldset', { class: 'bare' }, h('legend', null, 'that can answer'), h('div', { class: 'row' }, Object.keys(CAPABILITIES).map((it) => h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: true, on: { change: (event) => { if (event.target.checked) capabilities.add(it); else capabilities.delete(it); } } }), it)))));
  const form_ = h('form', { on: { submit: (event) => { event.preventDefault(); run(); } } },
    h('div', { class: 'try' }, section('Arguments', h('div', { class: 'panel' }, h('span', { class: 'unseen', id: 'arguments-label' }, 'Arguments'), plan.kind === 'choice' && h('label', { class: 'unseen', for: 'arguments' }, 'Which form'), plan.kind === 'json' && h('label', { class: 'unseen', for: 'arguments' }, 'Arguments'), formSide)),
      h('section', { class: 'json-side', 'aria-labelledby': 'json-label' }, h('h2', null, h('label', { for: 'json', id: 'json-label' }, 'JSON')), editor, problem, note, act, h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' }, 'Run'), running.cancel, running.status))));
  draw();
  return h('div', { class: 'sections' }, again && GIVEN[again.from] && h('div', { class: 'notice warn' }, h('p', null, GIVEN[again.from])), form_, running.node, item.get('kind') === 'tool' && section('On the command line', h('div', { class: 'panel cli' }, cli, copyButton(() => cli.textContent))), section('Calls of this tab', past));
}

/** @param {import('../app.js').Context} context */
export function page({ path: [id], query, until, may, self, setTitle }) {
  const shown = loading();
  const head = h('div', null, heading('Try', { above: link('Tools', '#/tools') }));
  const server = query.get('server') ?? '';
  if (!may('operate')) return [head, empty('Running a tool needs another role', 'Sign in as a user with admin:operate.')];
  if (!id) return [head, empty('Choose a tool', 'Open a tool and press Try.', link('Tools', '#/tools', { class: 'button' }))];
  Promise.all([getExact(`/items/${encodeURIComponent(id)}`, { until }), get('/servers', { until })]).then(([item, { items }]) => {
    const found = items.find((it) => it.name === server) ?? items[0];
    const revisions = [...found.revisions ?? ['2026-07-28']].sort();
    setTitle(`Try ${item.get('name')}`);
    fill(head, heading(item.get('name'), { above: [link('Tools', '#/tools'), ' / ', link(hidden.inline(item.get('name')), address(['tools', id], { server })), ' / Try'], lead: item.get('title') ?? '' }));
    try { shown.show(() => tryPart(item, found.name, { until, self, query, revisions })); } catch (error) { shown.fail(error); }
  }, (error) => shown.fail(error));
  return [head, shown.node];
}
