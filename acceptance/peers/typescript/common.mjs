// The shared part of the two TypeScript peers: the command line, the order of the steps, the input responses.
//
// A peer adapts one major version of the TypeScript SDK to the few functions that `main` calls, and
// returns plain JSON values. ../README.md describes the command line and the document printed.

import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** The timeout of one request, which is then reported as an error. */
export const STEP_MILLISECONDS = 20_000;

/** The time limit for the server to receive a cancellation. */
const CANCELLED_MILLISECONDS = 5_000;

/** The capabilities of the peer: all input requests that a server may send. */
export const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };

/** The token of a call with progress. */
const PROGRESS_TOKEN = 'peer-progress';

/** The token of the call that is cancelled. */
const CANCEL_TOKEN = 'peer-cancel';

/** The client information of the peer. */
export const IDENTITY = { name: 'creole-acceptance-peer', version: '1.0.0' };

/** The flags with the name of a tool or prompt and its arguments as JSON. */
const PAIRS = ['call', 'prompt', 'progress', 'cancel', 'elicit', 'sample', 'roots', 'list-changed'];

/** Reads the command line. */
function options(words) {
  const read = { mode: 'default' };
  let at = 0;
  const next = flag => {
    at += 1;
    if (at >= words.length) throw new Error(`${flag} needs more words`);
    return words[at];
  };
  for (; at < words.length && words[at] !== '--'; at += 1) {
    const flag = words[at];
    const name = flag.replace(/^--/, '');
    if (PAIRS.includes(name)) read[name] = { name: next(flag), arguments: JSON.parse(next(flag)) };
    else if (['login', 'mode', 'read', 'url'].includes(name)) read[name] = next(flag);
    else throw new Error(`${flag} is not a flag of a peer`);
  }
  if (!['default', 'auto', 'legacy', 'modern'].includes(read.mode)) {
    throw new Error(`--mode ${read.mode} is not a mode`);
  }
  [read.command, ...read.args] = words.slice(at + 1);
  if ((read.command === undefined) === (read.url === undefined)) {
    throw new Error('either --url or the server command after -- is needed');
  }
  return read;
}

/** The simplest value that one property of an elicitation's schema accepts. */
function plainest(shape) {
  if ('default' in shape) return shape.default;
  const choices = shape.oneOf ?? shape.anyOf;
  if (choices) return choices[0].const;
  if (shape.enum) return shape.enum[0];
  if (shape.type === 'array') return [plainest(shape.items ?? {})];
  if (shape.type === 'boolean') return true;
  if (shape.type === 'integer' || shape.type === 'number') return shape.minimum ?? 1;
  const formats = { email: 'peer@example.com', uri: 'https://example.com/', date: '2026-07-28' };
  return formats[shape.format] ?? 'peer';
}

/** The requests and notifications of the server, recorded by the SDK's handlers while the steps run. */
class Notes {
  elicited = false;
  sampled = false;
  rooted = false;
  errors = [];

  constructor() {
    this.toolsChanged = new Promise(resolve => {
      this.heardToolsChanged = () => resolve(true);
    });
  }

  /** Records an error of one step, with the code and data of the server, if any. */
  failed(step, error) {
    const { code, data } = error ?? {};
    this.errors.push({ step, code, message: String(error?.message ?? error), data });
  }

  /** Answers an elicitation: the schema's defaults, else the simplest values. */
  elicit = async request => {
    this.elicited = true;
    const properties = Object.entries(request.params.requestedSchema?.properties ?? {});
    const content = Object.fromEntries(properties.map(([name, shape]) => [name, plainest(shape)]));
    return { action: 'accept', content };
  };

  /** Answers a sampling request. */
  sample = async () => {
    this.sampled = true;
    const content = { type: 'text', text: 'Sampled by the peer.' };
    return { role: 'assistant', content, model: 'peer-model' };
  };

  /** Answers a request for the roots. */
  roots = async () => {
    this.rooted = true;
    return { roots: [{ uri: 'file:///peer/root', name: 'peer root' }] };
  };
}

/** The promise's value, or an error after the timeout of a step. */
function bounded(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    const message = `nothing came within ${STEP_MILLISECONDS} ms`;
    timer = setTimeout(() => reject(new Error(message)), STEP_MILLISECONDS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Performs the requested steps and returns their results. */
async function perform(peer, notes, asked) {
  const done = {};
  const step = async (name, work) => {
    try {
      done[name] = await bounded(work());
    } catch (error) {
      notes.failed(name, error);
    }
  };

  await step('tools', () => peer.tools());
  if (asked.call) await step('call', () => peer.call(asked.call));
  if (asked.read) {
    await step('resources', () => peer.resources());
    await step('read', () => peer.read({ uri: asked.read }));
  }
  if (asked.prompt) {
    await step('prompts', () => peer.prompts());
    await step('prompt', () => peer.prompt(asked.prompt));
  }
  if (asked.progress) {
    // The SDK's `onprogress` removes the token on the result, and so loses the progress that arrived
    // in the same read. A handler of the notification receives all of it.
    done.progress = [];
    peer.heed(({ params: { progressToken, progress, total, message } }) => {
      if (progressToken === PROGRESS_TOKEN) done.progress.push({ progress, total, message });
    });
    const called = { ...asked.progress, _meta: { progressToken: PROGRESS_TOKEN } };
    await step('progress_call', () => peer.call(called));
  }
  if (asked.cancel) await step('cancelled', () => cancel(peer, asked.cancel));
  for (const [name, fact, noted] of [
    ['elicit', 'elicited', 'elicited'],
    ['sample', 'sampled', 'sampled'],
    ['roots', 'roots', 'rooted'],
  ]) {
    if (!asked[name]) continue;
    await step(`${name}_call`, () => peer.call(asked[name]));
    done[fact] = notes[noted];
  }
  if (asked['list-changed']) {
    await step('list_changed_call', () => peer.subscribed(() => peer.call(asked['list-changed'])));
    await step('list_changed', () => notes.toolsChanged);
    done.list_changed ??= false;
  }
  return done;
}

/** Cancels a call after its first progress. Returns whether the server wrote the file that the arguments name. */
async function cancel(peer, asked) {
  const enough = new AbortController();
  peer.heed(({ params: { progressToken } }) => {
    if (progressToken === CANCEL_TOKEN) enough.abort('enough');
  });
  const called = { ...asked, _meta: { progressToken: CANCEL_TOKEN } };
  await peer.call(called, { signal: enough.signal }).catch(() => {});
  const { file } = asked.arguments;
  for (let waited = 0; waited < CANCELLED_MILLISECONDS && !existsSync(file); waited += 20) {
    await pause(20);
  }
  return existsSync(file);
}

/** Every entry of a list, page by page. `page` takes the cursor's parameters. */
export async function every(page, field) {
  const entries = [];
  let cursor;
  do {
    const result = await page(cursor === undefined ? undefined : { cursor });
    entries.push(...result[field]);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return entries;
}

/** Connects with `connect`, performs the steps of the command line, and prints the JSON document. */
export async function main(sdk, packageName, connect) {
  const asked = options(process.argv.slice(2));
  const manifest = new URL(`node_modules/${packageName}/package.json`, import.meta.url);
  const { version } = JSON.parse(readFileSync(manifest, 'utf8'));
  const notes = new Notes();
  const server = asked.url
    ? { url: new URL(asked.url), login: asked.login }
    : { command: asked.command, args: asked.args, env: process.env };
  const peer = await connect({ mode: asked.mode, server, notes });
  const done = await perform(peer, notes, asked);
  const { protocol, identity } = peer;
  // Only messages up to here count: closing may cause errors of a transport.
  const errors = [...notes.errors];
  await peer.close();
  const document = { sdk, version, protocol, server: identity ?? null, ...done, errors };
  await new Promise(written => process.stdout.write(`${JSON.stringify(document)}\n`, written));
}

/** Runs `main` and turns its failure into a message and exit code 1. */
export function start(...parts) {
  main(...parts).then(
    () => process.exit(0),
    error => {
      process.stderr.write(`${parts[0]}: ${error?.stack ?? error}\n`);
      process.exit(1);
    },
  );
}
