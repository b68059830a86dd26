// The calls that this tab made, and the arguments of a call that is run again.
const HISTORY = 'creole.tries';
const AGAIN = 'creole.again';
const MOST_KEPT = 20;

/** @typedef {{ id: string, server: string, name: string, args: string, revision: string, at: string, calls?: string[] }} Try */

/** The last calls, newest first. @returns {Try[]} */
export function tries() {
  try { return JSON.parse(sessionStorage.getItem(HISTORY) ?? '[]'); } catch { return []; }
}

/** @param {string} key @param {any} value */
function store(key, value) {
  try { sessionStorage.setItem(key, JSON.stringify(value)); } catch { /* The list is a convenience. */ }
}

/** @param {Try} entry */
export const rememberTry = (entry) => store(HISTORY, [entry, ...tries()].slice(0, MOST_KEPT));

/** Notes which calls a try became. @param {string} at @param {string[]} calls */
export const noteCalls = (at, calls) => store(HISTORY, tries().map((it) => it.at === at ? { ...it, calls } : it));

/**
 * The arguments of a call: of its captured request, or of a try of this tab.
 * @param {any} call @param {(text: string) => any} parse @param {(value: any) => string} stringify
 * @returns {{ args?: string, from: 'captured' | 'redacted' | 'tab' | 'unknown' }}
 */
export function argumentsOf(call, parse, stringify) {
  const own = tries().find((it) => it.calls?.includes(call.id));
  if (own) return { args: own.args, from: 'tab' };
  const frame = (call.frames ?? []).find((it) => it.side === 'client_in' && !it.truncated);
  if (frame === undefined) return { from: 'unknown' };
  try {
    const args = parse(frame.text).get('params')?.get('arguments') ?? new Map();
    return { args: stringify(args), from: frame.redacted ? 'redacted' : 'captured' };
  } catch { return { from: 'unknown' }; }
}

/** Hands the arguments of a call to the page Try. @param {string} call @param {{ args?: string, from: string }} given */
export const offer = (call, given) => store(AGAIN, { call, ...given });

/** The arguments that were handed over for this call. @param {string | null} call @returns {{ args?: string, from: string } | null} */
export function offered(call) {
  if (call === null) return null;
  try {
    const given = JSON.parse(sessionStorage.getItem(AGAIN) ?? 'null');
    return given?.call === call ? given : { from: 'unknown' };
  } catch { return { from: 'unknown' }; }
}
