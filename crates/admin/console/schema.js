// What a form can say about a JSON Schema, as a plan. What it cannot say becomes a JSON editor that names the keyword. No DOM here.
import { kindOf, stringify } from './json.js';

/**
 * @typedef {object} Plan
 * @property {'string'|'number'|'integer'|'boolean'|'null'|'const'|'enum'|'array'|'object'|'choice'|'json'} kind
 * @property {any} schema as written, to be shown beside an editor
 * @property {string} [title]
 * @property {string} [description]
 * @property {any} [default] @property {any[]} [examples]
 * @property {any} [value] of a constant @property {any[]} [values] of an enumeration
 * @property {Plan} [items] @property {Member[]} [members] @property {Alternative[]} [alternatives]
 * @property {string} [reason] why this is a JSON editor
 */
/** @typedef {{ name: string, isRequired: boolean, plan: Plan }} Member */
/** @typedef {{ label: string, plan: Plan }} Alternative */

const MOST_ALTERNATIVES = 8;
const DEEPEST_OBJECT = 4;
const DEEPEST_REFERENCE = 8;
const ANNOTATIONS = new Set(['title', 'description', 'default', 'examples', '$schema', '$id', '$comment', '$defs', 'definitions', '$anchor', 'deprecated', 'readOnly', 'writeOnly', 'enumNames', 'contentMediaType', 'contentEncoding']);
const KEYWORDS = /** @type {Record<string, Set<string>>} */ ({
  string: new Set(['type', 'format', 'minLength', 'maxLength', 'pattern']),
  number: new Set(['type', 'format', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']),
  boolean: new Set(['type']),
  null: new Set(['type']),
  array: new Set(['type', 'items', 'minItems', 'maxItems', 'uniqueItems']),
  object: new Set(['type', 'properties', 'required', 'additionalProperties', 'minProperties', 'maxProperties']),
  any: new Set(['type', 'const', 'enum']),
});
KEYWORDS.integer = KEYWORDS.number;

/** The plan of a schema, given as a value of `parse`. @param {any} schema @returns {Plan} */
export const planOf = (schema) => plan(schema, { root: schema, depth: 0, references: 0 });

/** @param {any} schema @param {{ root: any, depth: number, references: number }} at @returns {Plan} */
function plan(schema, at) {
  if (!(schema instanceof Map)) return editor(schema, schema === true ? 'a schema that allows everything' : 'a schema that is not an object');
  if (schema.has('$ref')) return referenced(schema, at);
  for (const word of ['oneOf', 'anyOf']) if (schema.has(word)) return choice(schema, word, at);
  const only = foreign(schema, 'any');
  if (schema.has('const') && only === undefined) return { kind: 'const', value: schema.get('const'), ...about(schema) };
  if (Array.isArray(schema.get('enum')) && foreign(schema, 'any', KEYWORDS.string) === undefined) return { kind: 'enum', values: schema.get('enum'), ...about(schema) };
  const type = schema.get('type') ?? (schema.has('properties') ? 'object' : undefined);
  if (Array.isArray(type)) {
    const alternatives = type.map((one) => new Map([...without(schema, KEYWORDS.any), ['type', one]]));
    return choice(new Map([...[...schema].filter(([name]) => ANNOTATIONS.has(name)), ['anyOf', alternatives.map((it) => keepFor(it))]]), 'anyOf', at);
  }
  if (typeof type !== 'string' || !(type in KEYWORDS) || type === 'any') return editor(schema, schema.has('allOf') ? 'allOf' : 'no type that a form knows');
  const unknown = foreign(schema, type);
  if (unknown !== undefined) return editor(schema, unknown);
  if (type === 'object') return object(schema, at);
  if (type === 'array') {
    if (!schema.has('items')) return editor(schema, 'an array of anything');
    const items = plan(schema.get('items'), at);
    return items.kind === 'json' ? editor(schema, `items: ${items.reason}`) : { kind: 'array', items, ...about(schema) };
  }
  return { kind: /** @type {any} */ (type), ...about(schema) };
}

/** @param {Map<string, any>} schema @param {Set<string>} names */
const without = (schema, names) => [...schema].filter(([name]) => !names.has(name));

/** Only the keywords of its type, for a schema with several types. @param {Map<string, any>} schema */
function keepFor(schema) {
  const own = KEYWORDS[schema.get('type')];
  const others = Object.values(KEYWORDS).flatMap((set) => [...set]);
  return new Map([...schema].filter(([name]) => !ANNOTATIONS.has(name) && (!own || own.has(name) || !others.includes(name))));
}

/** @param {any} schema @param {string} reason @returns {Plan} */
const editor = (schema, reason) => ({ kind: 'json', reason, ...(schema instanceof Map ? about(schema) : { schema }) });

/** @param {Map<string, any>} schema @returns {any} */
function about(schema) {
  const text = (name) => typeof schema.get(name) === 'string' ? schema.get(name) : undefined;
  const examples = schema.get('examples');
  return { schema, title: text('title'), description: text('description'), default: schema.get('default'), examples: Array.isArray(examples) ? examples : undefined };
}

/** The first keyword that this form does not draw. @param {Map<string, any>} schema @param {string} type @param {Set<string>} [more] */
const foreign = (schema, type, more) => [...schema.keys()].find((name) => !ANNOTATIONS.has(name) && !name.startsWith('x-') && !KEYWORDS[type].has(name) && !more?.has(name));

/** @param {Map<string, any>} schema @param {{ root: any, depth: number, references: number }} at @returns {Plan} */
function object(schema, at) {
  const properties = schema.get('properties');
  const more = schema.get('additionalProperties');
  if (more instanceof Map && more.size > 0) return editor(schema, 'additionalProperties');
  if (!(properties instanceof Map) || properties.size === 0) {
    return more === false || at.depth === 0 ? { kind: 'object', members: [], ...about(schema) } : editor(schema, 'an object with any members');
  }
  if (at.depth >= DEEPEST_OBJECT) return editor(schema, `more than ${DEEPEST_OBJECT} levels of objects`);
  const required = Array.isArray(schema.get('required')) ? schema.get('required') : [];
  const members = [...properties].map(([name, value]) => ({ name, isRequired: required.includes(name), plan: plan(value, { ...at, depth: at.depth + 1 }) }));
  return { kind: 'object', members, ...about(schema) };
}

/** @param {Map<string, any>} schema @param {{ root: any, depth: number, references: number }} at @returns {Plan} */
function referenced(schema, at) {
  const target = schema.get('$ref');
  if (typeof target !== 'string' || !target.startsWith('#')) return editor(schema, `$ref to ${stringify(target)}, which is not in this schema`);
  if (at.references >= DEEPEST_REFERENCE) return editor(schema, `more than ${DEEPEST_REFERENCE} references`);
  let found = at.root;
  for (const step of target.slice(1).split('/').slice(1)) {
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    found = found instanceof Map ? found.get(name) : Array.isArray(found) ? found[Number(name)] : undefined;
  }
  if (!(found instanceof Map)) return editor(schema, `$ref to ${target}, which does not exist`);
  const beside = [...schema].filter(([name]) => name !== '$ref');
  const unknown = beside.find(([name]) => !ANNOTATIONS.has(name));
  if (unknown) return editor(schema, `$ref with ${unknown[0]} beside it`);
  return plan(new Map([...found, ...beside]), { ...at, references: at.references + 1 });
}

/** @param {Map<string, any>} schema @param {string} word @param {{ root: any, depth: number, references: number }} at @returns {Plan} */
function choice(schema, word, at) {
  const written = schema.get(word);
  if (!Array.isArray(written) || written.length === 0) return editor(schema, word);
  if (written.length > MOST_ALTERNATIVES) return editor(schema, `${word} of more than ${MOST_ALTERNATIVES} alternatives`);
  const base = [...schema].filter(([name]) => name !== word && !ANNOTATIONS.has(name));
  const isObject = base.every(([name]) => KEYWORDS.object.has(name)) && (schema.get('type') ?? 'object') === 'object';
  if (base.length > 0 && !isObject) return editor(schema, `${word} with ${base[0][0]} beside it`);
  const plans = written.map((one) => plan(base.length > 0 ? merged(base, resolve(one, at)) : one, at));
  const label = discriminator(plans);
  const alternatives = plans.map((it, index) => ({ label: label?.(it) ?? it.title ?? nameOf(it) ?? `Alternative ${index + 1}`, plan: it }));
  const names = new Set(alternatives.map((it) => it.label));
  if (names.size < alternatives.length) alternatives.forEach((it, index) => { it.label = `${index + 1}: ${it.label}`; });
  return { kind: 'choice', alternatives, ...about(schema) };
}

/** @param {any} schema @param {{ root: any }} at */
function resolve(schema, at) {
  const target = schema instanceof Map && schema.size === 1 ? schema.get('$ref') : undefined;
  const name = typeof target === 'string' && /^#\/(\$defs|definitions)\/([^/]+)$/.exec(target);
  return name ? at.root.get?.(name[1])?.get?.(name[2]) ?? schema : schema;
}

/** An alternative together with what stands beside the choice. @param {[string, any][]} base @param {any} one */
function merged(base, one) {
  if (!(one instanceof Map)) return one;
  const result = new Map([...base, ...one]);
  const both = (name) => [new Map(base).get(name), one.get(name)];
  const [some, other] = both('properties');
  if (some instanceof Map && other instanceof Map) result.set('properties', new Map([...some, ...other]));
  const [first, second] = both('required');
  if (Array.isArray(first) && Array.isArray(second)) result.set('required', [...new Set([...first, ...second])]);
  return result;
}

/** A label by the member whose constant tells the alternatives apart. @param {Plan[]} plans */
function discriminator(plans) {
  if (!plans.every((it) => it.kind === 'object')) return undefined;
  const constant = (it, name) => it.members?.find((member) => member.name === name && member.plan.kind === 'const')?.plan.value;
  for (const { name } of plans[0].members ?? []) {
    const values = plans.map((it) => constant(it, name));
    if (values.every((value) => value !== undefined) && new Set(values.map((value) => stringify(value))).size === plans.length) {
      return (it) => `${name} = ${stringify(constant(it, name))}`;
    }
  }
  return undefined;
}

/** @param {Plan} it */
function nameOf(it) {
  if (it.kind === 'const') return stringify(it.value);
  if (it.kind === 'json') return it.schema instanceof Map && typeof it.schema.get('type') === 'string' ? it.schema.get('type') : 'JSON';
  return it.kind === 'choice' ? undefined : it.kind;
}

/** Whether a value has the form that a plan draws. @param {Plan} it @param {any} value @returns {boolean} */
export function fits(it, value) {
  const kind = kindOf(value);
  switch (it.kind) {
    case 'const': return stringify(it.value) === stringify(value);
    case 'enum': return (it.values ?? []).some((one) => stringify(one) === stringify(value));
    case 'integer': return kind === 'number' && /^-?\d+$/.test(value.text);
    case 'object': return kind === 'object' && (it.members ?? []).every((member) => !value.has(member.name) || member.plan.kind !== 'const' || fits(member.plan, value.get(member.name)));
    case 'choice': return (it.alternatives ?? []).some((one) => fits(one.plan, value));
    case 'array': return kind === 'array' && value.every((item) => fits(/** @type {Plan} */ (it.items), item));
    case 'json': {
      const type = it.schema instanceof Map ? it.schema.get('type') : undefined;
      return typeof type !== 'string' || type === kind || type === 'integer' && kind === 'number';
    }
    default: return kind === it.kind;
  }
}

/** The alternative of a choice that a value has: one that lacks nothing and names every member, else one that fits. @param {Plan} it @param {any} value */
export function chosen(it, value) {
  const suited = (it.alternatives ?? []).map((one, index) => ({ plan: one.plan, index })).filter((one) => fits(one.plan, value));
  const isWhole = (one) => missing(one, value).length === 0 && (one.kind !== 'object' || [...value.keys()].every((name) => one.members?.some((member) => member.name === name)));
  return (suited.find((one) => isWhole(one.plan)) ?? suited[0])?.index ?? -1;
}

/** The members that an object must have and lacks. @param {Plan} it @param {any} value @param {string} [path] @returns {string[]} */
export function missing(it, value, path = '') {
  if (it.kind === 'choice') {
    const index = chosen(it, value);
    return index < 0 ? [] : missing(/** @type {Alternative[]} */ (it.alternatives)[index].plan, value, path);
  }
  if (it.kind !== 'object' || !(value instanceof Map)) return [];
  return (it.members ?? []).flatMap((member) => {
    const name = path + member.name;
    if (!value.has(member.name)) return member.isRequired ? [name] : [];
    return missing(member.plan, value.get(member.name), `${name}.`);
  });
}

/** What a schema says in a few words, for a hint. @param {any} schema @returns {string} */
export function limits(schema) {
  if (!(schema instanceof Map)) return '';
  const words = /** @type {[string, string][]} */ ([['format', ''], ['minimum', '≥ '], ['exclusiveMinimum', '> '], ['maximum', '≤ '], ['exclusiveMaximum', '< '], ['multipleOf', 'multiple of '], ['minLength', 'at least '], ['maxLength', 'at most '], ['pattern', 'pattern '], ['minItems', 'at least '], ['maxItems', 'at most ']]);
  return words.filter(([name]) => schema.has(name)).map(([name, text]) => {
    const value = schema.get(name);
    const unit = name.endsWith('Length') ? ' characters' : name.endsWith('Items') ? ' items' : '';
    return `${text}${typeof value === 'string' ? value : stringify(value)}${unit}`;
  }).join(', ');
}
