// Takes the pictures of README.md from the demo shop: `npm start` in one terminal, `node tools/generate/pictures.mjs` in
// another. Run by hand when the counter or the card look different. Needs a Chromium, named by CHROMIUM_PATH.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { chromium } from 'playwright-core';

const FOLDER = 'docs/pictures';
const VIEW = { viewport: { width: 390, height: 760 }, deviceScaleFactor: 1.5, locale: 'en-GB' };
const MIN_STAMPS = 5;
const MAX_STAMPS = 7;

const shop = spawnSync('npx', ['inkpad', 'demo:shop'], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
});
if (shop.status !== 0) throw new Error('npx inkpad demo:shop failed: does npm start run?');
const find = (pattern) => pattern.exec(shop.stdout)?.[1] ?? '';
const baseUrl = find(/Sign in at (\S+)\/app /);
const password = find(/with the password (\S+)/);
const email = find(/as staff +(\S+)/);
const storeId = find(/\(store (\d+)\)/);
const token = find(/token of its owner: (\S+)/);

const store = `${baseUrl}/api/v1/accounts/${storeId}`;
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
// Cards speak the language of their store.
const body = JSON.stringify({ account: { locale: 'en-GB' } });
const patched = await fetch(store, { method: 'PATCH', headers, body });
if (!patched.ok) throw new Error(`${patched.status} ${await patched.text()}`);

const card = await findCard();
mkdirSync(FOLDER, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  for (const colorScheme of ['light', 'dark']) {
    const page = await open({ colorScheme });
    await page.goto(`${baseUrl}/passes/${card.uuid}`);
    await page.screenshot({ path: join(FOLDER, `card-${colorScheme}.png`) });
  }
  const page = await open({});
  await page.goto(`${baseUrl}/app/sign-in`);
  await page.locator('input[name=email]').fill(email);
  await page.locator('input[name=password]').fill(password);
  await page.locator('main button[type=submit]').first().click();
  await page.waitForURL((url) => url.pathname !== '/app/sign-in');
  await page.goto(`${baseUrl}/counter/${storeId}`);
  await page.getByLabel('Code of the card').fill(card.code);
  await page.getByRole('button', { name: 'Stamp', exact: true }).click();
  await page.locator('#result').getByText(`of ${card.stampsRequired}`).waitFor();
  // In the colours of the card, whatever the phone prefers.
  await page.screenshot({ path: join(FOLDER, 'counter.png') });
} finally {
  await browser.close();
}

async function open(options) {
  return (await browser.newContext({ ...VIEW, ...options })).newPage();
}

/** Finds a card that is more than half full. */
async function findCard() {
  for (let page = 1; ; page++) {
    const response = await fetch(`${store}/customers?page=${page}`, { headers });
    const { customers } = await response.json();
    for (const customer of customers) {
      for (const entry of customer.customer_cards) {
        const { stamps_count: stamps, stamps_remaining: remaining } = entry;
        if (entry.status !== 'active' || stamps < MIN_STAMPS || stamps > MAX_STAMPS) continue;
        return { uuid: entry.uuid, code: entry.code, stampsRequired: stamps + remaining };
      }
    }
  }
}
