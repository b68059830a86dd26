// Texts: characters that cannot be seen, and numbers and times as people read them. No DOM here.

const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const NAMES = new Map(Object.entries({
  '00AD': 'soft hyphen', '061C': 'Arabic letter mark', '180E': 'Mongolian vowel separator', '200B': 'zero width space',
  '200C': 'zero width non-joiner', '200D': 'zero width joiner', '200E': 'left-to-right mark', '200F': 'right-to-left mark',
  '2028': 'line separator', '2029': 'paragraph separator', '202A': 'left-to-right embedding', '202B': 'right-to-left embedding',
  '202C': 'pop directional formatting', '202D': 'left-to-right override', '202E': 'right-to-left override', '2060': 'word joiner',
  '2066': 'left-to-right isolate', '2067': 'right-to-left isolate', '2068': 'first strong isolate', '2069': 'pop directional isolate',
  '2800': 'blank Braille pattern', '3164': 'Hangul filler', FEFF: 'byte order mark', '001B': 'escape', '0000': 'null', '0007': 'bell',
  '0008': 'backspace', '000D': 'carriage return', '007F': 'delete',
}));

/** @param {string} character */
function describe(character) {
  const code = /** @type {number} */ (character.codePointAt(0));
  const hex = code.toString(16).toUpperCase().padStart(4, '0');
  let name = NAMES.get(hex);
  if (code >= 0xe0000 && code <= 0xe007f) {
    name = code >= 0xe0020 && code < 0xe007f ? `tag character for ${String.fromCharCode(code - 0xe0000)}` : 'tag character';
  } else if (code >= 0xfe00 && code <= 0xfe0f || code >= 0xe0100 && code <= 0xe01ef) name = 'variation selector';
  return { shown: `U+${hex}`, name: `U+${hex} ${name ?? 'character that is not shown'}` };
}

/** Whether a hidden character only joins or colours a symbol. @param {string} before @param {string} it @param {string} after */
function isPartOfSymbol(before, it, after) {
  const symbol = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\u20e3]$/u;
  if (it === '\ufe0f') return symbol.test(before) && before !== '\ufe0f' || after === '\u20e3';
  return it === '\u200d' && symbol.test(before) && /^\p{Extended_Pictographic}/u.test(after);
}

/** Control, bidirectional, zero-width, tag and unassigned characters. */
export const hidden = {
  /** @param {string} text */
  test: (text) => HIDDEN.test(text) && hidden.split(text).some((part) => typeof part !== 'string'),

  /** @param {string} text @returns {(string | { shown: string, name: string })[]} */
  split(text) {
    /** @type {(string | { shown: string, name: string })[]} */
    const parts = [];
    const characters = [...text];
    let plain = '';
    characters.forEach((it, index) => {
      const isShown = it === '\n' || it === '\t' || !HIDDEN.test(it)
        || isPartOfSymbol(characters[index - 1] ?? '', it, characters[index + 1] ?? '');
      if (isShown) { plain += it; return; }
      if (plain) parts.push(plain);
      plain = '';
      parts.push(describe(it));
    });
    if (plain) parts.push(plain);
    return parts;
  },

  /** The text for a place that only takes a string. @param {string} text */
  inline: (text) => !HIDDEN.test(text) ? text
    : hidden.split(text).map((part) => typeof part === 'string' ? part : `⟦${part.shown}⟧`).join(''),
};

const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const RATE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** @param {number | undefined} value */
export const count = (value) => value === undefined ? '–' : COUNT.format(value);
/** @param {number | undefined} value */
export const rate = (value) => value === undefined ? '–' : value > 0 && value < 0.1 ? '< 0.1' : RATE.format(value);
/** @param {number | undefined} ratio */
export const percent = (ratio) => ratio === undefined ? '–' : ratio > 0 && ratio < 0.001 ? '< 0.1 %' : `${RATE.format(ratio * 100)} %`;

/** A duration in milliseconds, in the unit that fits. @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === undefined || ms === null) return '–';
  if (ms < 1) return `${COUNT.format(ms * 1000)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${COUNT.format(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 120_000) return `${COUNT.format(ms / 1000)} s`;
  if (ms < 7_200_000) return `${COUNT.format(Math.floor(ms / 60_000))} min`;
  if (ms < 172_800_000) return `${COUNT.format(Math.floor(ms / 3_600_000))} h`;
  return `${COUNT.format(Math.floor(ms / 86_400_000))} days`;
}

/** @param {string | undefined} time @param {number} [now] */
export function ago(time, now = Date.now()) {
  const then = time === undefined ? NaN : Date.parse(time);
  if (Number.isNaN(then)) return '–';
  const passed = Math.max(0, now - then);
  return passed < 1000 ? 'now' : passed < 120_000 ? `${Math.floor(passed / 1000)} s ago` : `${duration(passed)} ago`;
}

/** @param {string | undefined} time */
export function clock(time) {
  const at = new Date(time ?? NaN);
  if (Number.isNaN(at.getTime())) return '–';
  const two = (value) => String(value).padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

/** @param {string | undefined} time */
export function dateTime(time) {
  const at = new Date(time ?? NaN);
  if (Number.isNaN(at.getTime())) return '–';
  const two = (value) => String(value).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(time).slice(0, 8)}`;
}

/** @param {number | undefined} value */
export function bytes(value) {
  if (value === undefined) return '–';
  if (value < 1000) return `${value} B`;
  if (value < 1_000_000) return `${RATE.format(value / 1000)} kB`;
  if (value < 1_000_000_000) return `${RATE.format(value / 1_000_000)} MB`;
  return `${RATE.format(value / 1_000_000_000)} GB`;
}

/** @param {number} number @param {string} one @param {string} [many] */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A word for a POSIX shell. @param {string} word */
export const shellWord = (word) => /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
