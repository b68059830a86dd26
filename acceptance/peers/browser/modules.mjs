// Checks the modules of the console that need no page: modules.mjs FOLDER. Prints what differs, as JSON.
import { isDeepStrictEqual } from 'node:util';
import { pathToFileURL } from 'node:url';

const folder = pathToFileURL(`${process.argv[2]}/`);
const load = (name) => import(new URL(name, folder));
const [{ parse, stringify }, { planOf, fits, missing, chosen }, { hidden, duration, shellWord }, { differences, wordDifferences }] = await Promise.all(['json.js', 'schema.js', 'text.js', 'diff.js'].map(load));

const failed = [];
const equal = (name, found, expected) => { if (!isDeepStrictEqual(found, expected)) failed.push({ name, found, expected }); };
const error = (text) => { try { parse(text); return null; } catch (problem) { return problem.message; } };

// JSON: digits, order and names stay, errors have a position.
for (const text of ['{"a":12345678901234567890,"2":1.0,"1":[1e5,true,null,""]}', '{"__proto__":{"x":1}}', '[]', '"\\u2028"', '-0.50']) equal(text, stringify(parse(text)), text === '"\\u2028"' ? JSON.stringify('\u2028') : text);
equal('position', error('{"a":1,\n "b":}'), 'Line 2, column 6: a value is expected, found "}"');
equal('trailing comma', error('[1,]'), 'Line 1, column 4: a value is expected, found "]"');
equal('twice', error('{"a":1,"a":2}'), 'Line 1, column 8: the member "a" occurs twice');
equal('end', error('{"a"'), 'Line 1, column 5: ":" is expected, the text ends');
equal('string', error('"abc'), 'Line 1, column 1: this string has no closing quotation mark');
equal('after', error('1 2'), 'Line 1, column 3: nothing may follow the value, found "2"');
equal('zero', error('01'), 'Line 1, column 2: nothing may follow the value, found "1"');
equal('depth', error('['.repeat(200)).startsWith('Line 1, column 130: more than 128'), true);
equal('indented', stringify(parse('{"a":[1,{"b":2}],"c":{}}'), 2), '{\n  "a": [\n    1,\n    {\n      "b": 2\n    }\n  ],\n  "c": {}\n}');

// Plans: what a form draws, and what it leaves to an editor.
const plan = (schema) => planOf(parse(JSON.stringify(schema)));
const member = (schema) => plan({ type: 'object', properties: { it: schema } }).members[0].plan;
const two = plan({ anyOf: [{ type: 'object', properties: { kind: { const: 'circle' }, r: { type: 'number' } }, required: ['kind', 'r'] }, { type: 'object', properties: { kind: { const: 'square' }, a: { type: 'number' } }, required: ['kind'] }] });
equal('discriminator', two.alternatives.map((it) => it.label), ['kind = "circle"', 'kind = "square"']);
equal('chosen', chosen(two, parse('{"kind":"square","a":1}')), 1);
equal('object or null', member({ anyOf: [{ type: 'object' }, { type: 'null' }] }).alternatives.map((it) => [it.label, it.plan.kind]), [['object', 'json'], ['null', 'null']]);
equal('types', member({ type: ['string', 'null'], maxLength: 3 }).alternatives.map((it) => it.plan.kind), ['string', 'null']);
equal('required by alternatives', plan({ type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } }, anyOf: [{ required: ['a'] }, { required: ['b'] }] }).alternatives.map((it) => it.plan.members.map((one) => one.isRequired)), [[true, false], [false, true]]);
for (const [schema, reason] of [
  [{ type: 'string', contentSchema: {} }, 'contentSchema'], [{ allOf: [{ type: 'string' }] }, 'allOf'], [{ type: 'object', patternProperties: {} }, 'patternProperties'],
  [{ type: 'array' }, 'an array of anything'], [{ type: 'object', additionalProperties: { type: 'string' } }, 'additionalProperties'], [{ $ref: 'https://example.com' }, '$ref to "https://example.com", which is not in this schema'],
  [{ $ref: '#/$defs/none' }, '$ref to #/$defs/none, which does not exist'], [true, 'a schema that allows everything'], [{ oneOf: Array(9).fill({ type: 'null' }) }, 'oneOf of more than 8 alternatives'], [{}, 'no type that a form knows'],
  [{ type: 'string', if: {} }, 'if'], [{ not: {} }, 'no type that a form knows'],
]) equal(`editor for ${JSON.stringify(schema)}`, [member(schema).kind, member(schema).reason], ['json', reason]);
const endless = plan({ $ref: '#/$defs/n', $defs: { n: { type: 'object', properties: { next: { $ref: '#/$defs/n' } } } } });
equal('recursion ends', JSON.stringify(endless, (key, value) => key === 'schema' ? undefined : value).includes('more than 4 levels of objects'), true);
equal('missing', missing(plan({ type: 'object', properties: { a: { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] } }, required: ['a', 'c'] }), parse('{"a":{}}')), ['a.b']);
equal('big integer fits', fits(plan({ type: 'integer' }), parse('123456789012345678901234567890')), true);
equal('fraction is no integer', fits(plan({ type: 'integer' }), parse('1.5')), false);

// Characters that cannot be seen.
const boxes = (text) => hidden.split(text).filter((part) => typeof part !== 'string').map((part) => part.shown);
equal('hidden', boxes('a\u200bb\u202ec\u{e0041}d\u0007e\ufeff\u00ad\u2066\ud800'), ['U+200B', 'U+202E', 'U+E0041', 'U+0007', 'U+FEFF', 'U+00AD', 'U+2066', 'U+D800']);
equal('symbols are whole', boxes('👩‍👩‍👧 ❤️ 1️⃣ 👍🏽 héllo שלום\n\t'), []);
equal('joiners between letters', boxes('a\u200db \ufe0f\ufe0f'), ['U+200D', 'U+FE0F', 'U+FE0F']);
equal('inline', hidden.inline('a\u200bb'), 'a⟦U+200B⟧b');
equal('durations', [0.004, 3.14, 41, 2100, 65_000, 7_300_000].map(duration), ['4 µs', '3.1 ms', '41 ms', '2.10 s', '65 s', '2 h']);
equal('shell', shellWord(`{"a":"it's"}`), `'{"a":"it'\\''s"}'`);

// Differences.
const changes = differences(parse('{"id":4,"a":{"x":1,"y":[1,2]},"gone":1}'), parse('{"id":8812,"a":{"x":1,"y":[1,3]},"come/~":1}'));
equal('members', changes.map((it) => [it.pointer, it.change]), [['/id', 'changed'], ['/a/y/1', 'changed'], ['/gone', 'removed'], ['/come~1~0', 'added']]);
equal('words', wordDifferences('Reads a file of the disk', 'Reads any file of the disk now').map((it) => [it.kind, it.text]), [['same', 'Reads '], ['gone', 'a'], ['come', 'any'], ['same', ' file of the disk'], ['come', ' now']]);
process.stdout.write(JSON.stringify(failed));
