// A form from a plan. A field tells its value, or `ABSENT`: optional and absent is not empty.
import { h, fill } from './dom.js';
import { Numeral, isNumber, parse, stringify } from './json.js';
import { chosen, fits, limits } from './schema.js';
import { button, select } from './widgets.js';
import { hidden } from './text.js';

/** @typedef {import('./schema.js').Plan} Plan */
/** @typedef {{ node: any, get: () => any, problems: () => string[] }} Field */

export const ABSENT = Symbol('absent');
let identities = 0;
const identity = () => `f${identities += 1}`;

/**
 * A form for a plan and a value. Values that do not fit become JSON editors, so that nothing is lost.
 * @param {Plan} plan @param {any} value a value of `parse`, or ABSENT @param {() => void} changed @param {{ id: string, describedby?: string }} labels @returns {Field}
 */
export function field(plan, value, changed, labels) {
  if (value !== ABSENT && plan.kind !== 'json' && !fits(plan, value)) return editor({ ...plan, kind: 'json', reason: `this value is not the ${plan.kind === 'choice' ? 'choice' : plan.kind} of the schema` }, value, changed, labels);
  const make = /** @type {any} */ ({ string, number, integer: number, boolean, null: nothing, const: constant, enum: enumeration, array, object, choice, json: editor });
  return make[plan.kind](plan, value, changed, labels);
}

const described = (labels) => ({ id: labels.id, 'aria-describedby': labels.describedby ?? false });
/** What a field starts with. @param {Plan} plan @param {any} value */
const start = (plan, value) => value !== ABSENT ? value : plan.default !== undefined && fits(plan, plan.default) ? plan.default : ABSENT;

/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
function string(plan, value, changed, labels) {
  let isSet = value !== ABSENT;
  const format = plan.schema.get?.('format');
  const limit = plan.schema.get?.('maxLength');
  const isLong = format === undefined && (limit === undefined || Number(limit.text) > 120);
  const list = plan.examples?.every((one) => typeof one === 'string') ? `${labels.id}-examples` : undefined;
  const type = format === 'date' ? 'date' : format === 'email' ? 'email' : 'text';
  const shown = value === ABSENT ? '' : value;
  const input = () => { isSet = true; changed(); };
  const isLined = isLong && !list || shown.includes('\n');
  const control = isLined
    ? h('textarea', { ...described(labels), rows: Math.min(8, Math.max(1, shown.split('\n').length)), value: shown, spellcheck: 'false', on: { input: () => { control.rows = Math.min(8, control.value.split('\n').length); input(); } } })
    : h('input', { ...described(labels), type, value: shown, spellcheck: 'false', autocomplete: 'off', list: list ?? false, placeholder: format === 'date-time' ? '2026-07-28T12:00:00Z' : format === 'uri' ? 'https://' : '', on: { input } });
  const node = list ? h('div', null, control, h('datalist', { id: list }, (plan.examples ?? []).map((one) => h('option', { value: one })))) : control;
  return { node, get: () => isSet ? control.value : ABSENT, problems: () => [] };
}

/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
function number(plan, value, changed, labels) {
  const control = h('input', { ...described(labels), type: 'text', inputmode: 'decimal', autocomplete: 'off', spellcheck: 'false', value: value === ABSENT ? '' : value.text, on: { input: () => { mark(); changed(); } } });
  const text = () => control.value.trim();
  const wrong = () => text() !== '' && (!isNumber(text()) || plan.kind === 'integer' && !/^-?\d+$/.test(text()));
  const mark = () => { if (wrong()) control.setAttribute('aria-invalid', 'true'); else control.removeAttribute('aria-invalid'); };
  return {
    node: control,
    get: () => text() === '' || wrong() ? ABSENT : new Numeral(text()),
    problems: () => wrong() ? [`${JSON.stringify(text())} is not ${plan.kind === 'integer' ? 'an integer' : 'a number'}`] : [],
  };
}

/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
const boolean = (plan, value, changed, labels) => pick(['true', 'false'], [true, false], value, changed, labels);
/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
function enumeration(plan, value, changed, labels) {
  const names = plan.schema.get?.('enumNames');
  const values = plan.values ?? [];
  return pick(values.map((one, index) => Array.isArray(names) && typeof names[index] === 'string' ? names[index] : typeof one === 'string' ? one : stringify(one)), values, value, changed, labels);
}

/** @param {string[]} names @param {any[]} values @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
function pick(names, values, value, changed, labels) {
  const index = value === ABSENT ? -1 : values.findIndex((one) => stringify(one) === stringify(value));
  const control = select([['', 'Choose…'], ...names.map((name, at) => /** @type {[string, string]} */ ([String(at), name]))], index < 0 ? '' : String(index), changed, described(labels));
  return { node: control, get: () => control.value === '' ? ABSENT : values[Number(control.value)], problems: () => [] };
}

/** @param {Plan} plan @param {any} value @param {() => void} _changed @param {any} labels @returns {Field} */
function constant(plan, value, _changed, labels) {
  return { node: h('output', { ...described(labels), class: 'mono' }, stringify(plan.value)), get: () => plan.value, problems: () => [] };
}
/** @param {Plan} plan @param {any} _value @param {() => void} _changed @param {any} labels @returns {Field} */
const nothing = (plan, _value, _changed, labels) => ({ node: h('output', { ...described(labels), class: 'mono' }, 'null'), get: () => null, problems: () => [] });

/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
function array(plan, value, changed, labels) {
  /** @type {{ field: Field, node: any }[]} */
  let rows = [];
  let isSet = value !== ABSENT;
  const list = h('div', { class: 'items' });
  const add = (item) => {
    const id = identity();
    const inner = field(/** @type {Plan} */ (plan.items), item, changed, { id });
    const row = { field: inner, node: h('div', { class: 'item' }, h('div', null, h('label', { class: 'unseen', for: id }, `Item ${rows.length + 1}`), inner.node), button('Remove', () => { rows = rows.filter((one) => one !== row); row.node.remove(); changed(); more.focus(); }, { class: 'small', 'aria-label': `Remove item ${rows.length + 1}` })) };
    rows.push(row);
    list.append(row.node);
  };
  const more = button('Add item', () => { isSet = true; add(start(/** @type {Plan} */ (plan.items), ABSENT)); changed(); list.lastElementChild?.querySelector('input, textarea, select')?.focus(); }, { class: 'small', ...described(labels) });
  if (value !== ABSENT) for (const item of value) add(item);
  return {
    node: h('div', { class: 'items' }, list, h('div', null, more)),
    get: () => { const values = rows.map((row) => row.field.get()).filter((one) => one !== ABSENT); return isSet || values.length ? values : ABSENT; },
    problems: () => rows.flatMap((row) => row.field.problems()),
  };
}

/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
function object(plan, value, changed, labels) {
  const known = new Set((plan.members ?? []).map((member) => member.name));
  const others = value === ABSENT ? [] : [...value].filter(([name]) => !known.has(name));
  const members = (plan.members ?? []).map((it) => ({ it, part: member(it, value === ABSENT ? ABSENT : value.has(it.name) ? value.get(it.name) : ABSENT, value !== ABSENT, changed) }));
  const rest = others.length === 0 ? null : editor({ kind: 'json', schema: plan.schema, reason: 'members that the schema does not name' }, new Map(others), changed, { id: identity() }, 'Other members');
  const node = h('div', { role: 'group', 'aria-labelledby': `${labels.id}-label` }, members.map((one) => one.part.node), rest?.node, members.length === 0 && !rest && h('p', { class: 'muted', id: labels.id }, 'No arguments.'));
  return {
    node,
    get: () => {
      const result = new Map();
      for (const { it, part } of members) { const one = part.get(); if (one !== ABSENT) result.set(it.name, one); }
      const more = rest?.get();
      if (more instanceof Map) for (const [name, one] of more) result.set(name, one);
      return result;
    },
    problems: () => [...members.flatMap(({ it, part }) => part.problems().map((text) => `${it.name}: ${text}`)), ...rest?.problems() ?? []],
  };
}

/** One member of an object, with the choice to leave it out. @param {import('./schema.js').Member} it @param {any} value @param {boolean} isGiven @param {() => void} changed @returns {Field} */
function member({ name, isRequired, plan }, value, isGiven, changed) {
  const id = identity();
  const limitText = limits(plan.schema);
  const bounds = [limitText, plan.default !== undefined && `default ${stringify(plan.default)}`].filter(Boolean).join(' · ');
  const describedby = plan.description || bounds ? `${id}-about` : undefined;
  const isNested = plan.kind === 'object' || plan.kind === 'choice' || plan.kind === 'array';
  let isSent = value !== ABSENT || isRequired && (!isGiven || plan.kind === 'const');
  const inside = h('div', { class: isNested ? 'group' : '' });
  /** @type {Field} */
  let inner;
  const build = (with_) => {
    inner = field(plan, with_, () => { if (!isSent) { isSent = true; draw(); } changed(); }, { id, describedby });
    fill(inside, inner.node);
  };
  build(value !== ABSENT ? value : isRequired && !isGiven ? start(plan, ABSENT) : ABSENT);
  const absent = isRequired ? null : h('input', { type: 'checkbox', checked: !isSent, 'aria-label': `${name}: not sent`, on: { change: () => { isSent = !absent.checked; if (isSent && inner.get() === ABSENT) build(start(plan, ABSENT)); draw(); changed(); } } });
  const hasLabel = !['object', 'array', 'const', 'null'].includes(plan.kind);
  const node = h('div', { class: 'field' },
    h('div', { class: 'field-head' }, h(hasLabel ? 'label' : 'span', hasLabel ? { class: 'name', for: id, id: `${id}-label` } : { class: 'name', id: `${id}-label` }, name),
      plan.title && plan.title.toLowerCase() !== name.toLowerCase().replaceAll('_', ' ') && h('span', { class: 'muted' }, plan.title), h('small', { class: 'muted' }, typeName(plan), isRequired && ', required'),
      absent && h('label', { class: 'check' }, absent, 'not sent')),
    describedby && h('p', { class: 'about', id: describedby }, plan.description, plan.description && bounds && '\n', bounds), inside);
  const draw = () => { node.classList.toggle('unsent', !isSent); if (absent) absent.checked = !isSent; inside.hidden = isNested && !isSent; };
  draw();
  return {
    node,
    get: () => isSent ? inner.get() : ABSENT,
    problems: () => isSent ? inner.problems() : [],
  };
}

/** @param {Plan} plan */
const typeName = (plan) => plan.kind === 'json' || plan.kind === 'const' ? 'JSON' : plan.kind === 'enum' ? 'one of a list' : plan.kind === 'array' ? `array of ${/** @type {Plan} */ (plan.items).kind}` : plan.kind;

/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @returns {Field} */
function choice(plan, value, changed, labels) {
  const alternatives = plan.alternatives ?? [];
  const first = value === ABSENT ? 0 : chosen(plan, value);
  const kept = new Map();
  const inside = h('div', { class: 'group' });
  /** @type {Field} */
  let inner;
  let index = Math.max(0, first);
  const show = (with_) => {
    const id = identity();
    const one = alternatives[index].plan;
    inner = field(one, with_ === ABSENT ? start(one, ABSENT) : with_, changed, { id });
    fill(inside, one.description && h('p', { class: 'about' }, one.description), h('label', { class: 'unseen', for: id, id: `${id}-label` }, hidden.inline(alternatives[index].label)), inner.node);
  };
  const control = select(alternatives.map((one, at) => /** @type {[string, string]} */ ([String(at), one.label])), String(index), (next) => {
    kept.set(index, inner.get());
    index = Number(next);
    show(kept.get(index) ?? ABSENT);
    changed();
  }, { ...described(labels), 'data-choice': 'yes' });
  show(value);
  return { node: h('div', { class: 'stack' }, control, inside), get: () => inner.get(), problems: () => inner.problems() };
}

/** @param {Plan} plan @param {any} value @param {() => void} changed @param {any} labels @param {string} [title] @returns {Field} */
function editor(plan, value, changed, labels, title) {
  const type = plan.schema instanceof Map ? plan.schema.get('type') : undefined;
  const text = value !== ABSENT ? stringify(value, 2) : plan.default !== undefined ? stringify(plan.default, 2) : type === 'object' ? '{}' : type === 'array' ? '[]' : '';
  const problem = h('p', { class: 'problem', 'aria-live': 'polite' });
  const control = h('textarea', { ...described(labels), class: 'code', rows: Math.min(12, Math.max(3, text.split('\n').length)), spellcheck: 'false', value: text, 'aria-label': title ?? false, on: { input: () => { check(); changed(); } } });
  /** @returns {{ value: any, problem?: string }} */
  const read = () => {
    if (control.value.trim() === '') return { value: ABSENT };
    try { return { value: parse(control.value) }; } catch (error) { return { value: ABSENT, problem: /** @type {Error} */ (error).message }; }
  };
  const check = () => { const found = read().problem; fill(problem, found); if (found) control.setAttribute('aria-invalid', 'true'); else control.removeAttribute('aria-invalid'); };
  const node = h('div', { class: 'stack' }, h('p', { class: 'hint' }, `As JSON: the form cannot draw ${plan.reason}.`), control, problem,
    h('details', null, h('summary', { class: 'hint' }, 'Schema'), h('pre', { class: 'panel', tabindex: '0' }, stringify(plan.schema, 2))));
  return { node, get: () => read().value, problems: () => { const found = read().problem; return found ? [found] : []; } };
}
