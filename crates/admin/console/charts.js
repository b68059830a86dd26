// Charts as SVG. Each has a text for those who do not see it.
import { h } from './dom.js';
import { clock, count, dateTime } from './text.js';

/**
 * Bars of calls, with errors in front.
 * @param {{ calls: number[], errors: number[], step_ms: number, end: string }} points @param {string} label
 */
export function bars({ calls, errors, step_ms: step, end }, label) {
  const width = 10;
  const height = 100;
  const most = Math.max(1, ...calls);
  const bar = (value, index, kind) => {
    const tall = value === 0 ? 0 : Math.max(1.5, value / most * (height - 4));
    return value > 0 && h('rect', { class: kind, x: index * width + 1, y: (height - tall).toFixed(2), width: width - 2, height: tall.toFixed(2), rx: 1 });
  };
  const last = Date.parse(end);
  const title = (index) => `${clock(new Date(last - (calls.length - 1 - index) * step).toISOString()).slice(0, 8)}: ${count(calls[index])} calls, ${count(errors[index])} errors`;
  return h('svg', { class: 'chart', viewBox: `0 0 ${calls.length * width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    [0.02, 0.5].map((at) => h('line', { class: 'axis', x1: 0, x2: calls.length * width, y1: height * at, y2: height * at })),
    calls.map((value, index) => h('g', null, h('title', null, title(index)), bar(value, index, 'bars'), bar(errors[index], index, 'errors'))),
    h('line', { class: 'axis', x1: 0, x2: calls.length * width, y1: height, y2: height }));
}

const TONES = /** @type {Record<string, string>} */ ({ ready: 'good', starting: 'busy', waiting: 'idle', backoff: 'warn', open: 'warn', dead: 'bad' });

/** The states of an upstream over time. @param {{ at: string, state: string }[]} history @param {number} now */
export function strip(history, now) {
  const first = Date.parse(history[0].at);
  const whole = Math.max(1, now - first);
  return h('svg', { class: 'strip', viewBox: '0 0 1000 22', preserveAspectRatio: 'none', role: 'img', 'aria-label': `States: ${history.map((it) => `${it.state} at ${dateTime(it.at)}`).join(', ')}` },
    history.map((it, index) => {
      const from = (Date.parse(it.at) - first) / whole * 1000;
      const to = index + 1 < history.length ? (Date.parse(history[index + 1].at) - first) / whole * 1000 : 1000;
      return h('rect', { class: TONES[it.state] ?? 'idle', x: from.toFixed(1), y: 0, width: Math.max(2, to - from - 1).toFixed(1), height: 22 }, h('title', null, `${it.state} since ${dateTime(it.at)}`));
    }));
}

/** One bar on a line of time. @param {string} kind @param {number} start @param {number} duration @param {number} whole */
export function span(kind, start, duration, whole) {
  const scale = 1000 / Math.max(whole, 0.001);
  const x = Math.min(996, start * scale);
  return h('svg', { viewBox: '0 0 1000 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, h('rect', { class: 'ground', x: 0, y: 0, width: 1000, height: 12, rx: 2 }),
    h('rect', { class: kind, x: x.toFixed(2), y: 1, width: Math.max(4, Math.min(1000 - x, duration * scale)).toFixed(2), height: 10, rx: 1 }));
}
