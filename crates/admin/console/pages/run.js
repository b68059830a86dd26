// A running operation: progress, logs, input requests and the result.
import { h, fill, setText } from '../dom.js';
import { change, stream } from '../api.js';
import { ABSENT, field } from '../form.js';
import { Numeral, kindOf, parse, stringify } from '../json.js';
import { planOf } from '../schema.js';
import { tree } from '../json_view.js';
import { address, button, copyButton, failure, labelled, link, say, section, state } from '../widgets.js';
import { blocks } from './result.js';
import { count, duration } from '../text.js';

const MOST_LOGS = 500;

/** @param {any} data of `parse` @param {string} name */
const number = (data, name) => data.get(name) instanceof Numeral ? Number(data.get(name).text) : undefined;

/** @param {string} server @param {AbortSignal} until @param {any} self */
export function runPart(server, until, self) {
  const status = h('span', { role: 'status' });
  const cancel = button('Cancel', () => stopping?.(), { disabled: true });
  const node = h('div', { class: 'out' });
  /** @type {(() => void) | null} */
  let stopping = null;

  /** @param {string} body @param {(calls: string[]) => void} onCalls hears which calls it became */
  const start = async (body, onCalls = () => {}) => {
    stopping?.();
    const stop = new AbortController();
    let isOver = false;
    let call = '';
    stopping = () => { stop.abort(); if (!isOver) { isOver = true; fill(status, state('cancelled')); cancel.disabled = true; } };
    const progress = progressPart();
    const logs = h('pre', { class: 'panel', tabindex: '0', hidden: true, 'aria-label': 'Log messages' });
    const inputs = h('div', { class: 'out' });
    const result = h('div', { class: 'out' });
    fill(node, section('Result', progress.node, logs, inputs, result));
    fill(status, state('active', 'runs'));
    cancel.disabled = false;
    const over = (shownState, ...children) => {
      isOver = true;
      cancel.disabled = true;
      fill(status, shownState);
      inputs.replaceChildren();
      progress.node.hidden = true;
      fill(result, ...children);
      node.scrollIntoView({ block: 'nearest' });
      say(status.textContent);
    };
    const events = /** @type {Record<string, (data: any) => void>} */ ({
      started: (data) => { call = data.get('call'); },
      progress: (data) => progress.update(data),
      log: (data) => {
        logs.hidden = false;
        const text = data.get('data');
        logs.append(h('span', null, `${data.get('level')} ${data.get('logger') ?? ''} ${typeof text === 'string' ? text : stringify(text)}\n`));
        while (logs.children.length > MOST_LOGS) logs.firstElementChild?.remove();
      },
      input_request: (data) => {
        const part = inputPart(data, (answer) => change('POST', `/calls/${encodeURIComponent(call)}/input`, stringify(new Map([['key', data.get('key')], ...answer]))));
        inputs.append(part);
        fill(status, state('input_required', 'asks you'));
        say('The tool asks for input');
        part.querySelector('input, textarea, select, button')?.focus();
      },
      result: (data) => {
        const value = data.get('result');
        const isError = value instanceof Map && value.get('isError') === true;
        const ids = data.get('calls') ?? [];
        onCalls(ids);
        over([state(isError ? 'tool_error' : 'success'), ` ${duration(number(data, 'duration_ms'))} `, ids.map((id, index) => [link(ids.length > 1 ? `Round ${index + 1}` : 'Timeline', address(['calls', id])), ' '])], blocks(value));
      },
      error: (data) => { onCalls(data.get('calls') ?? []); over([state('fault'), ` ${duration(number(data, 'duration_ms'))}`], h('div', { class: 'notice bad' }, h('p', { class: 'notice-title' }, data.get('message') ?? 'The call failed'), h('p', null, 'Code ', h('code', null, stringify(data.get('code') ?? null))), data.has('data') && tree(data.get('data')))); },
      cancelled: () => over(state('cancelled'), h('p', { class: 'muted' }, 'The call was cancelled.')),
    });
    try {
      await stream(`/servers/${encodeURIComponent(server)}/calls`, { method: 'POST', body, until: AbortSignal.any([until, stop.signal]), exact: true }, (name, data) => events[name]?.(data));
      if (!isOver) over(state('dead', 'interrupted'), failure({ message: 'The stream ended without a result', code: 'unreachable' }));
    } catch (error) {
      if (!until.aborted && !stop.signal.aborted) over(state('dead', 'not run'), failure(error));
      else if (!until.aborted) fill(result, h('p', { class: 'muted' }, 'The call was cancelled.'));
    }
  };
  return { node, status, cancel, start, self };
}

function progressPart() {
  const bar = h('progress', { 'aria-label': 'Progress' });
  const text = h('p', { class: 'muted' });
  const node = h('div', { class: 'stack', hidden: true }, bar, text);
  return {
    node,
    update(data) {
      const [done, total] = [number(data, 'progress'), number(data, 'total')];
      node.hidden = false;
      if (total !== undefined && done !== undefined) { bar.max = total; bar.value = done; }
      setText(text, [total === undefined ? count(done) : `${count(done)} of ${count(total)}`, data.get('message')].filter(Boolean).join(' – '));
    },
  };
}

/**
 * One input request of the server, answered here.
 * @param {any} data @param {(answer: [string, any][]) => Promise<any>} send
 */
function inputPart(data, send) {
  const kind = data.get('kind');
  const params = data.get('params') ?? new Map();
  const trouble = h('div', { 'aria-live': 'polite' });
  const node = h('form', { class: 'block ask', on: { submit: (event) => event.preventDefault() } });
  const answer = async (response) => {
    for (const it of node.querySelectorAll('button')) it.disabled = true;
    try {
      await send(response);
      node.className = 'block';
      fill(node, h('header', null, h('span', null, `${kind}: answered`)));
    } catch (error) {
      fill(trouble, failure(error));
      for (const it of node.querySelectorAll('button')) it.disabled = false;
    }
  };
  const respond = (response) => answer([['response', response]]);
  const refuse = button('Refuse', () => answer([['decline', true]]));
  const parts = kind === 'elicitation/create' ? elicitation(params, respond, trouble) : kind === 'sampling/createMessage' ? sampling(params, respond, refuse, trouble) : roots(respond, refuse, trouble);
  fill(node, h('header', null, state('input_required', 'The tool asks'), h('span', null, kind), h('span', null, `round ${stringify(data.get('round') ?? new Numeral('1'))}`)), h('div', { class: 'stack' }, parts, trouble));
  return node;
}

/** @param {any} params @param {(response: any) => void} respond @param {any} trouble */
function elicitation(params, respond, trouble) {
  const message = h('p', { class: 'prose' }, params.get('message') ?? '');
  const others = [button('Decline', () => respond({ action: 'decline' })), button('Dismiss', () => respond({ action: 'cancel' }))];
  const url = params.get('url');
  if (typeof url === 'string') {
    return [message, h('div', { class: 'panel cli' }, h('code', { class: 'wrap' }, url), copyButton(() => url, 'Copy the address')), h('p', { class: 'hint' }, 'Read the address before you open it. It is not a link on purpose.'),
      h('div', { class: 'actions' }, others, button('Accept', () => respond({ action: 'accept' }), { class: 'primary', type: 'submit' }))];
  }
  const plan = planOf(params.get('requestedSchema') ?? parse('{"type":"object"}'));
  const form = field(plan, ABSENT, () => fill(trouble), { id: `input-${Math.random().toString(36).slice(2)}` });
  const accept = () => {
    const wrong = form.problems();
    if (wrong.length > 0) { fill(trouble, h('p', { class: 'bad' }, wrong.join('; '))); return; }
    const content = form.get();
    respond({ action: 'accept', content: content === ABSENT ? new Map() : content });
  };
  return [message, form.node, h('div', { class: 'actions' }, others, button('Accept', accept, { class: 'primary', type: 'submit' }))];
}

/** @param {any} params @param {(response: any) => void} respond @param {any} refuse @param {any} _trouble */
function sampling(params, respond, refuse, _trouble) {
  const text = h('textarea', { rows: 4 });
  const model = h('input', { type: 'text', value: 'console', spellcheck: 'false' });
  const messages = kindOf(params.get('messages')) === 'array' ? params.get('messages') : [];
  return [h('p', null, 'It asks for a message of a model. You answer as the model.'), h('div', { class: 'panel' }, tree(messages, 4)), labelled('Answer', text), labelled('Name of the model', model),
    h('div', { class: 'actions' }, refuse, button('Answer', () => respond({ role: 'assistant', content: { type: 'text', text: text.value }, model: model.value, stopReason: 'endTurn' }), { class: 'primary', type: 'submit' }))];
}

/** @param {(response: any) => void} respond @param {any} refuse @param {any} _trouble */
function roots(respond, refuse, _trouble) {
  const list = h('textarea', { rows: 3, spellcheck: 'false', placeholder: 'file:///home/anna/project' });
  const uris = () => list.value.split('\n').map((it) => it.trim()).filter(Boolean).map((uri) => ({ uri }));
  return [h('p', null, 'It asks which folders it may work in.'), labelled('Addresses, one on each line', list), h('div', { class: 'actions' }, refuse, button('Answer', () => respond({ roots: uris() }), { class: 'primary', type: 'submit' }))];
}
