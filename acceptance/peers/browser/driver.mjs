// Drives one page of Chromium. Each line of stdin is a command as JSON, each line of stdout is its answer.
// Usage: driver.mjs CHROMIUM_FOLDER ORIGIN. Selectors are those of Playwright, such as `role=button[name="Run"]`.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [, , folder, origin] = process.argv;
const usr = join(folder, 'root/usr');
const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
const libraries = join(usr, `lib/${machine}-linux-gnu`);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const place = mkdtempSync(join(tmpdir(), 'creole-browser-'));
const preferred = { 'system-ui': 'Inter', 'sans-serif': 'Inter', 'ui-monospace': 'JetBrains Mono', monospace: 'JetBrains Mono' };
writeFileSync(join(place, 'fonts.conf'), `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
  <dir>/usr/share/fonts</dir><dir>${usr}/share/fonts</dir><cachedir>${place}/fonts</cachedir>
  ${Object.entries(preferred).map(([family, font]) => `<alias binding="strong"><family>${family}</family><prefer><family>${font}</family></prefer></alias>`).join('')}
</fontconfig>`);

const browser = await chromium.launch({
  executablePath: join(usr, 'lib/chromium/chromium'),
  args: ['--no-sandbox', '--disable-gpu', '--js-flags=--expose-gc'],
  env: {
    ...process.env, HOME: place, FONTCONFIG_FILE: join(place, 'fonts.conf'), DBUS_SESSION_BUS_ADDRESS: 'disabled:',
    LD_LIBRARY_PATH: [libraries, join(libraries, 'pulseaudio'), join(usr, 'lib/chromium')].join(':'),
  },
});
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true });
context.setDefaultTimeout(20_000);
await context.grantPermissions(['clipboard-write'], { origin });
await context.addInitScript(() => {
  globalThis.violations = [];
  document.addEventListener('securitypolicyviolation', (event) => globalThis.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
});
const page = await context.newPage();
const session = await context.newCDPSession(page);

/** What must not happen, and the requests. */
const seen = { dialogs: [], foreign: [], errors: [], requests: [], downloads: [] };
page.on('dialog', (dialog) => { seen.dialogs.push(dialog.message()); dialog.dismiss(); });
page.on('pageerror', (error) => seen.errors.push(String(error.stack ?? error)));
page.on('console', (message) => { if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) seen.errors.push(message.text()); });
page.on('download', (download) => seen.downloads.push(download));
page.on('popup', (popup) => seen.foreign.push(`popup ${popup.url()}`));
page.on('request', (request) => {
  const url = request.url();
  if (!url.startsWith(`${origin}/`) && !url.startsWith('data:') && !url.startsWith('blob:')) seen.foreign.push(url);
  else seen.requests.push({ at: Date.now(), method: request.method(), path: new URL(url).pathname, body: request.postData() ?? undefined });
});

/** Runs an expression on the page, whose policy forbids `eval`. */
async function evaluate(expression) {
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, allowUnsafeEvalBlockedByCSP: true, userGesture: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value ?? null;
}

const at = (selector) => page.locator(selector).first();
const commands = {
  goto: async ({ address }) => { await page.goto(address.startsWith('#') ? `${origin}/${address}` : address); },
  reload: async () => { await page.reload(); },
  click: async ({ selector }) => { await at(selector).click(); },
  fill: async ({ selector, value }) => { await at(selector).fill(value); },
  choose: async ({ selector, value }) => { await at(selector).selectOption({ label: value }); },
  press: async ({ key }) => { await page.keyboard.press(key); },
  type: async ({ text }) => { await page.keyboard.type(text); },
  wait: async ({ selector }) => { await at(selector).waitFor(); },
  gone: async ({ selector }) => { await at(selector).waitFor({ state: 'hidden' }); },
  text: async ({ selector }) => at(selector).innerText(),
  value: async ({ selector }) => at(selector).inputValue(),
  count: async ({ selector }) => page.locator(selector).count(),
  focused: async () => evaluate('document.activeElement?.innerText || document.activeElement?.getAttribute("aria-label") || document.activeElement?.id || document.activeElement?.tagName'),
  evaluate: async ({ expression }) => evaluate(expression),
  media: async ({ scheme, forced, width, height }) => {
    await page.emulateMedia({ colorScheme: scheme, forcedColors: forced ? 'active' : 'none' });
    await page.setViewportSize({ width, height });
  },
  axe: async () => {
    await evaluate(`${axe};0`);
    return evaluate('axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations.map((it) => `${it.id}: ${it.nodes[0].html.slice(0, 200)} ${it.nodes[0].failureSummary}`))');
  },
  screenshot: async ({ path }) => { await page.screenshot({ path, fullPage: false }); },
  save: async ({ selector }) => {
    const [download] = await Promise.all([page.waitForEvent('download'), at(selector).click()]);
    return readFileSync(await download.path(), 'utf8');
  },
  seen: async () => ({ ...seen, downloads: seen.downloads.length, violations: await evaluate('globalThis.violations ?? []') }),
  heap: async () => { await evaluate('gc()'); return (await session.send('Runtime.getHeapUsage')).usedSize; },
  offline: async ({ isOffline }) => { await context.setOffline(isOffline); },
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const command = JSON.parse(line);
    answer = { result: (await commands[command.do](command)) ?? null };
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
rmSync(place, { recursive: true, force: true });
