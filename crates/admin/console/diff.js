// Differences of two JSON values, member by member, and of two texts, word by word. No DOM here.
import { kindOf, stringify } from './json.js';

/** @typedef {{ pointer: string, change: 'same' | 'added' | 'removed' | 'changed', before: any, after: any }} Difference */

/** @param {any} before @param {any} after @param {string} [pointer] @returns {Difference[]} */
export function differences(before, after, pointer = '') {
  if (before === undefined && after === undefined) return [];
  if (before === undefined) return [{ pointer, change: 'added', before, after }];
  if (after === undefined) return [{ pointer, change: 'removed', before, after }];
  if (before instanceof Map && after instanceof Map) {
    const names = [...new Set([...before.keys(), ...after.keys()])];
    return names.flatMap((name) => differences(before.get(name), after.get(name), `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`));
  }
  if (kindOf(before) === 'array' && kindOf(after) === 'array' && before.length === after.length) {
    return before.flatMap((item, index) => differences(item, after[index], `${pointer}/${index}`));
  }
  return stringify(before) === stringify(after) ? [] : [{ pointer, change: 'changed', before, after }];
}

/** @param {string} text */
const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
const MOST_WORDS = 1500;

/** The words of two texts. @param {string} before @param {string} after @returns {{ kind: 'same' | 'gone' | 'come', text: string }[]} */
export function wordDifferences(before, after) {
  const [old, now] = [words(before), words(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const [left, right] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  const middle = left.length > MOST_WORDS || right.length > MOST_WORDS ? [...left.map((text) => ({ kind: 'gone', text })), ...right.map((text) => ({ kind: 'come', text }))] : longest(left, right);
  /** @type {any[]} */
  const parts = [{ kind: 'same', text: old.slice(0, head).join('') }, ...middle, { kind: 'same', text: old.slice(old.length - tail).join('') }];
  /** @type {any[]} */
  const joined = [];
  for (const part of parts) {
    if (part.text === '') continue;
    const last = joined.at(-1);
    if (last?.kind === part.kind) last.text += part.text;
    else joined.push({ ...part });
  }
  return joined;
}

/** By the longest common subsequence. @param {string[]} left @param {string[]} right */
function longest(left, right) {
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  for (let row = left.length - 1; row >= 0; row -= 1) {
    for (let column = right.length - 1; column >= 0; column -= 1) {
      lengths[row * width + column] = left[row] === right[column] ? lengths[(row + 1) * width + column + 1] + 1
        : Math.max(lengths[(row + 1) * width + column], lengths[row * width + column + 1]);
    }
  }
  const parts = [];
  let [row, column] = [0, 0];
  while (row < left.length || column < right.length) {
    if (row < left.length && column < right.length && left[row] === right[column]) { parts.push({ kind: 'same', text: left[row] }); row += 1; column += 1; }
    else if (column >= right.length || row < left.length && lengths[(row + 1) * width + column] >= lengths[row * width + column + 1]) { parts.push({ kind: 'gone', text: left[row] }); row += 1; }
    else { parts.push({ kind: 'come', text: right[column] }); column += 1; }
  }
  return parts;
}
