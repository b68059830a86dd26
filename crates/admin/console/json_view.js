// JSON and JSON Schema as trees.
import { h } from './dom.js';
import { kindOf, lossless, stringify } from './json.js';
import { limits } from './schema.js';
import { tag } from './widgets.js';

const MOST_CHILDREN = 200;

/** @param {any} value plain, or of `parse` @param {number} [open] how many levels are open */
export function tree(value, open = 3) {
  const exact = value instanceof Map || Array.isArray(value) && value.some((item) => item instanceof Map) ? value : lossless(value);
  return h('div', { class: 'tree' }, node(null, exact, open));
}

/** @param {string | null} name @param {any} value @param {number} open @returns {any} */
function node(name, value, open) {
  const kind = kindOf(value);
  const label = name === null ? [] : [h('span', { class: 'name' }, name), ': '];
  if (kind !== 'object' && kind !== 'array') return h('span', null, label, h('span', { class: kind }, stringify(value)));
  const entries = kind === 'array' ? value.map((item, index) => [String(index), item]) : [...value];
  const summary = kind === 'array' ? `[${entries.length}]` : entries.length === 0 ? '{}' : `{${entries.length}}`;
  if (entries.length === 0) return h('span', null, label, h('span', { class: 'muted' }, kind === 'array' ? '[]' : '{}'));
  return h('details', { open: open > 0 }, h('summary', null, label, h('span', { class: 'muted' }, summary)),
    h('ul', null, entries.slice(0, MOST_CHILDREN).map(([key, item]) => h('li', null, node(key, item, open - 1))),
      entries.length > MOST_CHILDREN && h('li', { class: 'muted' }, `${entries.length - MOST_CHILDREN} more`)));
}

/** The properties of a schema, as a list for people. @param {any} schema of `parse` @param {number} [depth] @returns {any} */
export function schemaTree(schema, depth = 0) {
  const properties = schema instanceof Map ? schema.get('properties') : undefined;
  if (!(properties instanceof Map) || properties.size === 0) return depth === 0 ? h('p', { class: 'muted' }, 'No properties are named.') : null;
  const required = Array.isArray(schema.get('required')) ? schema.get('required') : [];
  return h('ul', { class: 'schema' }, [...properties].map(([name, one]) => h('li', null,
    h('div', { class: 'row' }, h('span', { class: 'name' }, name), h('span', { class: 'muted' }, typeOf(one)), required.includes(name) && tag('required'), one instanceof Map && one.has('default') && h('small', { class: 'muted' }, `default ${stringify(one.get('default'))}`)),
    one instanceof Map && typeof one.get('description') === 'string' && h('p', { class: 'prose muted' }, one.get('description')),
    limits(one) && h('small', { class: 'muted wrap' }, limits(one)),
    depth < 6 && schemaTree(one instanceof Map && one.get('items') instanceof Map ? one.get('items') : one, depth + 1))));
}

/** @param {any} schema @returns {string} */
function typeOf(schema) {
  if (!(schema instanceof Map)) return 'anything';
  if (schema.has('const')) return `always ${stringify(schema.get('const'))}`;
  if (Array.isArray(schema.get('enum'))) return `one of ${schema.get('enum').slice(0, 8).map((one) => stringify(one)).join(', ')}${schema.get('enum').length > 8 ? ' …' : ''}`;
  if (schema.has('$ref')) return String(schema.get('$ref')).replace(/^.*\//, '');
  for (const word of ['anyOf', 'oneOf']) if (Array.isArray(schema.get(word))) return schema.get(word).map(typeOf).join(' or ');
  const type = schema.get('type');
  if (type === 'array') return `array of ${typeOf(schema.get('items'))}`;
  return Array.isArray(type) ? type.join(' or ') : typeof type === 'string' ? type : schema.has('properties') ? 'object' : 'anything';
}
