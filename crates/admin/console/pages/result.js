// The blocks of a result. Nothing in them is followed, loaded or played before a click.
import { h, fill } from '../dom.js';
import { kindOf, parse, stringify } from '../json.js';
import { tree } from '../json_view.js';
import { bytes, duration } from '../text.js';
import { button, copyButton, save } from '../widgets.js';

const IMAGES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

/** @param {string} name @param {any} detail @param {any} actions @param {...any} content */
const block = (name, detail, actions, ...content) => h('div', { class: 'block' }, h('header', null, h('strong', null, name), detail && h('span', null, detail), h('span', { class: 'end' }, actions)), h('div', null, content));

/** @param {string} data */
function decoded(data) {
  try { return Uint8Array.from(atob(data), (character) => character.charCodeAt(0)); } catch { return null; }
}

/** @param {string} text */
function textBlock(text) {
  let value;
  try { value = /^\s*[[{]/.test(text) ? parse(text) : undefined; } catch { value = undefined; }
  const place = h('div', null, h('pre', { tabindex: '0' }, text));
  let isTree = false;
  const toggle = value !== undefined && button('As a tree', () => { isTree = !isTree; fill(place, isTree ? tree(value) : h('pre', { tabindex: '0' }, text)); toggle.setAttribute('aria-pressed', String(isTree)); }, { class: 'small', 'aria-pressed': 'false' });
  return block('text', `${text.length} characters`, [toggle, copyButton(() => text)], place);
}

/** @param {string} type @param {string} data */
function image(type, data) {
  const content = decoded(data);
  const place = h('div', null);
  const show = button('Show the image', () => fill(place, h('img', { alt: 'Image of the result', src: `data:${type};base64,${data}` })));
  fill(place, !content ? h('p', { class: 'bad' }, 'Its data is not base64.') : IMAGES.test(type) ? show : h('p', { class: 'muted' }, 'This kind of image is not shown here. Save it to look at it.'));
  return block('image', `${type}, ${content ? bytes(content.length) : ''}`, content && button('Save', () => save('image', [content], 'application/octet-stream'), { class: 'small' }), place);
}

/** Played by the audio graph of the browser: the page may load no media. @param {string} type @param {string} data */
function audio(type, data) {
  const content = decoded(data);
  const told = h('span', { class: 'muted', role: 'status' });
  /** @type {AudioContext | null} */
  let playing = null;
  const play = button('Play', async () => {
    if (playing) { playing.close(); playing = null; fill(play, 'Play'); return; }
    try {
      playing = new AudioContext();
      const node = playing.createBufferSource();
      node.buffer = await playing.decodeAudioData(/** @type {Uint8Array} */ (content).slice().buffer);
      node.connect(playing.destination);
      node.onended = () => { playing?.close(); playing = null; fill(play, 'Play'); };
      node.start();
      fill(told, duration(node.buffer.duration * 1000));
      fill(play, 'Stop');
    } catch { playing = null; fill(told, 'This browser cannot play it. Save it to listen.'); }
  });
  return block('audio', `${type}, ${content ? bytes(content.length) : ''}`, content && button('Save', () => save('audio', [content], 'application/octet-stream'), { class: 'small' }), content ? h('div', { class: 'row' }, play, told) : h('p', { class: 'bad' }, 'Its data is not base64.'));
}

function resource(it) {
  const inner = it.get('resource') ?? it;
  const uri = String(inner.get?.('uri') ?? '');
  const type = String(inner.get?.('mimeType') ?? '');
  const [text, blob] = [inner.get?.('text'), inner.get?.('blob')];
  const content = typeof blob === 'string' ? decoded(blob) : null;
  const body = typeof text === 'string' ? h('pre', { tabindex: '0' }, text) : typeof blob === 'string' && IMAGES.test(type) ? image(type, blob) : content ? h('p', { class: 'muted' }, `${bytes(content.length)} of data`) : h('p', { class: 'muted' }, inner.get?.('description') ?? 'Only its address is given.');
  return block(it.get('type') === 'resource_link' ? 'resource link' : 'resource', [h('code', { class: 'wrap' }, uri), ' ', type], [content && button('Save', () => save('resource', [content], 'application/octet-stream'), { class: 'small' }), copyButton(() => uri, 'Copy the address')], body);
}

function content(it) {
  const text = (name) => typeof it.get(name) === 'string' ? it.get(name) : '';
  switch (it.get('type')) {
    case 'text': return textBlock(text('text'));
    case 'image': return image(text('mimeType'), text('data'));
    case 'audio': return audio(text('mimeType'), text('data'));
    case 'resource': case 'resource_link': return resource(it);
    default: return block(text('type') || 'block', '', null, tree(it));
  }
}

export function blocks(result) {
  if (!(result instanceof Map)) return [block('result', '', null, tree(result))];
  const list = (name) => kindOf(result.get(name)) === 'array' ? result.get(name).filter((it) => it instanceof Map) : [];
  const parts = [...list('content').map(content), ...list('contents').map(resource), ...list('messages').map((it) => h('div', { class: 'stack' }, h('h3', null, String(it.get('role'))), it.get('content') instanceof Map && content(it.get('content'))))];
  if (result.has('structuredContent')) parts.push(block('structured content', '', copyButton(() => stringify(result.get('structuredContent'), 2)), tree(result.get('structuredContent'), 4)));
  const whole = h('details', null, h('summary', null, 'The whole result as JSON'), h('pre', { class: 'panel', tabindex: '0' }, stringify(result, 2)));
  return [...parts, parts.length === 0 && block('result', '', copyButton(() => stringify(result, 2)), tree(result, 4)), parts.length > 0 && whole];
}
