// JSON without loss: members keep their order and numbers their digits. Errors say line and column. No DOM here.

/** A number as it was written. */
export class Numeral {
  /** @param {string} text */
  constructor(text) { this.text = text; }
}
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]+/y;
const ESCAPES = new Map(Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }));
const DEEPEST = 128;

/** @param {string} text */
export const isNumber = (text) => { NUMBER.lastIndex = 0; return NUMBER.exec(text)?.[0] === text; };

export class JsonError extends Error {
  /** @param {string} what @param {string} text @param {number} at */
  constructor(what, text, at) {
    const before = text.slice(0, at);
    const line = before.split('\n').length;
    const column = [...before.slice(before.lastIndexOf('\n') + 1)].length + 1;
    super(`Line ${line}, column ${column}: ${what}`);
    this.line = line;
    this.column = column;
    this.at = at;
  }
}

/** Objects become `Map`, numbers `Numeral`. @param {string} text @returns {any} */
export function parse(text) {
  let at = 0;
  const fail = (what, place = at) => { throw new JsonError(what, text, place); };
  const space = () => { while (at < text.length && ' \t\n\r'.includes(text[at])) at += 1; };
  const found = () => at < text.length ? `found ${JSON.stringify([...text.slice(at, at + 2)][0])}` : 'the text ends';

  const string = () => {
    const start = at;
    at += 1;
    let result = '';
    for (;;) {
      PLAIN.lastIndex = at;
      const plain = PLAIN.exec(text)?.[0] ?? '';
      result += plain;
      at += plain.length;
      if (at >= text.length) fail('this string has no closing quotation mark', start);
      const it = text[at];
      if (it === '"') { at += 1; return result; }
      if (it !== '\\') fail('a control character in a string must be written as an escape, such as \\n');
      const next = text[at + 1];
      if (next === 'u') {
        const digits = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) fail('\\u needs four hexadecimal digits');
        result += String.fromCharCode(parseInt(digits, 16));
        at += 6;
      } else {
        const escape = ESCAPES.get(next) ?? fail('unknown escape in a string');
        result += escape;
        at += 2;
      }
    }
  };

  /** @param {number} depth @returns {any} */
  const value = (depth) => {
    if (depth > DEEPEST) fail(`more than ${DEEPEST} levels`);
    space();
    const it = text[at];
    if (it === '{') return object(depth);
    if (it === '[') return array(depth);
    if (it === '"') return string();
    for (const [word, meaning] of /** @type {[string, any][]} */ ([['true', true], ['false', false], ['null', null]])) {
      if (text.startsWith(word, at)) { at += word.length; return meaning; }
    }
    NUMBER.lastIndex = at;
    const digits = NUMBER.exec(text)?.[0];
    if (digits === undefined) fail(`a value is expected, ${found()}`);
    at += /** @type {string} */ (digits).length;
    return new Numeral(/** @type {string} */ (digits));
  };

  const object = (depth) => {
    const members = new Map();
    at += 1;
    space();
    if (text[at] === '}') { at += 1; return members; }
    for (;;) {
      space();
      const place = at;
      if (text[at] !== '"') fail(`a member name in quotation marks is expected, ${found()}`);
      const name = string();
      if (members.has(name)) fail(`the member ${JSON.stringify(name)} occurs twice`, place);
      space();
      if (text[at] !== ':') fail(`":" is expected, ${found()}`);
      at += 1;
      members.set(name, value(depth + 1));
      space();
      if (text[at] === '}') { at += 1; return members; }
      if (text[at] !== ',') fail(`"," or "}" is expected, ${found()}`);
      at += 1;
    }
  };

  const array = (depth) => {
    /** @type {any[]} */
    const items = [];
    at += 1;
    space();
    if (text[at] === ']') { at += 1; return items; }
    for (;;) {
      items.push(value(depth + 1));
      space();
      if (text[at] === ']') { at += 1; return items; }
      if (text[at] !== ',') fail(`"," or "]" is expected, ${found()}`);
      at += 1;
    }
  };

  const result = value(0);
  space();
  if (at < text.length) fail(`nothing may follow the value, ${found()}`);
  return result;
}

/** Writes values of `parse` and plain values. @param {any} value @param {number} [indent] @param {string} [margin] @returns {string} */
export function stringify(value, indent = 0, margin = '') {
  if (value instanceof Numeral) return value.text;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const inner = margin + ' '.repeat(indent);
  const isList = Array.isArray(value);
  const entries = isList ? [] : [...(value instanceof Map ? value : Object.entries(value))].filter((entry) => entry[1] !== undefined);
  const parts = isList ? value.map((item) => stringify(item, indent, inner))
    : entries.map(([name, item]) => `${JSON.stringify(name)}:${indent ? ' ' : ''}${stringify(item, indent, inner)}`);
  const [open, close] = isList ? '[]' : '{}';
  if (parts.length === 0) return open + close;
  return indent ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}` : `${open}${parts.join(',')}${close}`;
}

/** The kind of a value as JSON Schema names it. @param {any} value */
export function kindOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (value instanceof Map) return 'object';
  if (value instanceof Numeral || typeof value === 'number') return 'number';
  return typeof value;
}

/** Values of `parse` from plain values. @param {any} value @returns {any} */
export const lossless = (value) => parse(JSON.stringify(value) ?? 'null');

export const equal = (left, right) => stringify(left) === stringify(right);
