// Every request of the console. The bearer is kept in this tab, and no cookie exists.
import { parse } from './json.js';

const BASE = '/api/v1';
const KEY = 'creole.bearer';
/** How long to wait after a failure, in milliseconds. */
const PAUSES = [1000, 2000, 5000, 10_000, 30_000];

/** A refusal of the API, or no answer. */
export class ApiError extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(problem.title ?? `The server answered with status ${status}`);
    this.status = status;
    /** @type {string} */
    this.code = problem.code ?? 'unknown';
    /** @type {string | undefined} */
    this.detail = problem.detail;
    this.problem = problem;
  }
}

let bearer = sessionStorage.getItem(KEY);
/** @type {(problem: ApiError) => void} */
let onSignedOut = () => {};
/** All requests of a session end with it. */
let session = new AbortController();

export const isSignedIn = () => bearer !== null;
/** @param {(problem: ApiError) => void} listener */
export const whenSignedOut = (listener) => { onSignedOut = listener; };

/** @param {ApiError} problem */
function endSession(problem) {
  if (bearer === null) return;
  bearer = null;
  sessionStorage.removeItem(KEY);
  session.abort();
  onSignedOut(problem);
}

/** @typedef {{ method?: string, body?: string | object, accept?: string, headers?: Record<string, string>, until?: AbortSignal }} Options */

/** @param {string} path @param {Options} options @returns {Promise<Response>} */
async function send(path, { method = 'GET', body, accept = 'application/json', headers = {}, until } = {}) {
  const all = new Headers({ Accept: accept, ...headers });
  if (bearer !== null) all.set('Authorization', `Bearer ${bearer}`);
  if (body !== undefined) all.set('Content-Type', 'application/json');
  const signals = [session.signal, ...until ? [until] : []];
  let response;
  try {
    response = await fetch(BASE + path, {
      method, headers: all, body: typeof body === 'object' ? JSON.stringify(body) : body,
      signal: AbortSignal.any(signals), credentials: 'omit', cache: 'no-store', redirect: 'error',
    });
  } catch (error) {
    if (signals.some((signal) => signal.aborted)) throw new DOMException('The page was left', 'AbortError');
    throw new ApiError(0, { code: 'unreachable', title: 'Creole does not answer', detail: `${method} ${BASE}${path}: ${error instanceof Error ? error.message : error}` });
  }
  if (response.ok || response.status === 304) return response;
  const problem = await response.json().catch(() => ({}));
  const error = new ApiError(response.status, problem);
  if (response.status === 401 && path !== '/login') endSession(error);
  throw error;
}

/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export async function get(path, options) {
  return (await send(path, options)).json();
}

/** Numbers keep their digits, and members their order. @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const getExact = async (path, options) => parse(await (await send(path, options)).text());

/** @param {string} path @param {Options} [options] */
export const getText = async (path, options) => (await send(path, options)).text();

/** @param {string} method @param {string} path @param {string | object} [body] @param {Options} [options] @returns {Promise<any>} */
export async function change(method, path, body, options) {
  const response = await send(path, { ...options, method, body });
  return response.status === 204 ? undefined : response.json();
}

/** @param {{ token: string } | { user: string, password: string }} credential */
export async function signIn(credential) {
  const answer = await change('POST', '/login', credential);
  session = new AbortController();
  bearer = answer.bearer;
  sessionStorage.setItem(KEY, answer.bearer);
  return answer;
}

export async function signOut() {
  await change('POST', '/logout', {}).catch(() => {});
  endSession(new ApiError(401, { code: 'signed-out', title: 'You signed out' }));
}

/** @param {number} ms @param {AbortSignal} until */
const wait = (ms, until) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  until.addEventListener('abort', () => { clearTimeout(timer); resolve(undefined); });
});
const isAbort = (error) => error?.name === 'AbortError';
const isFinal = (error) => isAbort(error) || [400, 401, 403, 404, 409, 410].includes(error?.status);

/**
 * Fetches again and again until the page is left. A refusal that cannot change ends it.
 * @param {string} path @param {number} every @param {AbortSignal} until
 * @param {(data: any) => void} onData @param {(error: any) => void} onError
 * @returns {() => void} fetches at once
 */
export function poll(path, every, until, onData, onError) {
  let etag = '';
  let wake = () => {};
  const run = async () => {
    for (let failures = 0; !until.aborted;) {
      try {
        const response = await send(path, { until, headers: etag ? { 'If-None-Match': etag } : {} });
        if (response.status !== 304) {
          etag = response.headers.get('ETag') ?? '';
          const data = await response.json();
          if (!until.aborted) onData(data);
        }
        failures = 0;
      } catch (error) {
        if (until.aborted || isAbort(error)) return;
        onError(error);
        if (isFinal(error)) return;
        failures += 1;
        etag = '';
      }
      const pause = failures ? PAUSES[Math.min(failures, PAUSES.length) - 1] : every;
      await Promise.race([wait(document.hidden ? Math.max(pause, 10_000) : pause, until), new Promise((resolve) => { wake = () => resolve(undefined); })]);
    }
  };
  run();
  return () => wake();
}

/**
 * Reads one event stream to its end. Numbers in the data keep their digits if `exact`.
 * @param {string} path @param {Options & { exact?: boolean }} options @param {(name: string, data: any, raw: string) => void} onEvent
 */
export async function stream(path, { exact = false, ...options }, onEvent) {
  const response = await send(path, { ...options, accept: 'text/event-stream' });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      let name = 'message';
      /** @type {string[]} */
      const data = [];
      for (const line of block.split('\n')) {
        if (line.startsWith('event:')) name = line.slice(6).trim();
        else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
      }
      if (data.length === 0) continue;
      const raw = data.join('\n');
      if (name === 'end') {
        const { reason } = JSON.parse(raw);
        if (reason !== 'shutdown') endSession(new ApiError(401, { code: 'session-ended', title: 'You are signed out', detail: reason }));
        return;
      }
      onEvent(name, exact ? parse(raw) : JSON.parse(raw), raw);
    }
  }
}

/**
 * Reads an event stream, and opens it again when it ends, until the page is left.
 * @param {string} path @param {AbortSignal} until @param {(name: string, data: any) => void} onEvent @param {(error: any) => void} onState
 */
export async function follow(path, until, onEvent, onState) {
  for (let failures = 0; !until.aborted;) {
    try {
      const started = stream(path, { until }, (name, data) => { failures = 0; onState(null); onEvent(name, data); });
      await started;
      if (until.aborted || bearer === null) return;
      onState(new ApiError(0, { code: 'unreachable', title: 'The live view was interrupted' }));
    } catch (error) {
      if (until.aborted || isAbort(error)) return;
      onState(error);
      if (isFinal(error)) return;
    }
    failures += 1;
    await wait(PAUSES[Math.min(failures, PAUSES.length) - 1], until);
  }
}
