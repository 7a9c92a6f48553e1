import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Passes } from '#outbound/passes/passes.service.js';
import { PassLinks } from '#web/web-card/pass-links.service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { plainPng } from '../support/fixtures/pictures.js';
import { useService } from '../support/http/contract.js';
import { PassFollower } from '../support/services/pass-dispatcher.js';
import { startService } from '../support/services/service.js';

const IPHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15';

const folder = await mkdtemp(join(tmpdir(), 'inkpad-buttons-'));
const service = useService({ WALLET_BUTTONS_DIR: folder });
const store = service.useStore();

beforeAll(async () => {
  Object.defineProperty(getLinks(), 'appleEnabled', { value: true, configurable: true });
});
afterAll(() => rm(folder, { recursive: true }));

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="110" height="35"/>';
await writeFile(join(folder, 'apple-en.svg'), SVG);
await writeFile(join(folder, 'apple-en-dark.svg'), SVG);
await writeFile(join(folder, 'apple-de.png'), plainPng(110, 35));
await writeFile(join(folder, 'read-me.txt'), 'from the vendors');

const getLinks = () => service.running.app.get(PassLinks, { strict: false });

async function get(path: string) {
  const response = await fetch(service.running.baseUrl + path, {
    headers: { 'user-agent': IPHONE },
  });
  const { status, headers } = response;
  return { status, headers, text: await response.text() };
}

/** Reads the visible text of a page. */
const words = (page: string) =>
  page
    .replace(/<(style|head)[^]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');

describe('the states of the card', () => {
  it('WEBCARD-32 A full card says that it is full, and more stamps read as full cards and the rest, such as "1 full card and 3 of 10"', async () => {
    const { page, stamp } = await enrol(store, { card: { max_stamps_per_request: 10 } });
    for (const [stamps, count, note] of [
      [9, '9 / 10', undefined],
      [1, '10 / 10', 'Your card is full'],
      [3, '13', '1 full card and 3 of 10'],
      [7, '20', '2 full cards'],
      [4, '24', '2 full cards and 4 of 10'],
    ] as const) {
      await stamp(stamps);
      const { text } = await get(page);
      expect(/<p class="count">[^]*?<strong>([^<]*)</.exec(text)?.[1]).toBe(count);
      expect(/<p class="full">([^<]*)</.exec(text)?.[1]).toBe(note);
    }
  });

  it('WEBCARD-33 Rewards that can be redeemed stand first, with how many stamps each uses and how to redeem it', async () => {
    const { page, stamp } = await enrol(store, {
      rewards: [
        ['Espresso', 5],
        ['Cake', 10],
      ],
    });
    await stamp(4);
    expect(words((await get(page)).text)).not.toContain('reward is ready');
    await stamp(1);
    expect(words((await get(page)).text)).toMatch(
      /Your reward is ready Espresso uses 5 stamps Show the code at the counter.*Coffee.*5 \/ 10/,
    );
    await stamp(5);
    expect(words((await get(page)).text)).toMatch(
      /Rewards to choose from Espresso uses 5 stamps Cake uses 10 stamps/,
    );
    await stamp(5);
    expect(words((await get(page)).text)).toMatch(
      /Your rewards are ready Espresso uses 5 stamps Cake uses 10 stamps/,
    );
  });

  it('WEBCARD-34 For a quarter of an hour after a redemption the web card says so, until the balance changes again', async () => {
    const { page, stamp, path, card } = await enrol(store, { rewards: [['Espresso', 5]] });
    await get(page);
    const follower = new PassFollower(service.running);
    try {
      await stamp(6);
      await follower.waitUntilCaughtUp();
      const { body: rewards } = await store.get<{ id: number }[]>(
        `${store.store}/rewards?card_id=${card.id}`,
      );
      expect((await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id })).status).toBe(200);
      await follower.waitUntilCaughtUp();
      expect(words((await get(page)).text)).toContain('Enjoy! Espresso: redeemed just now.');
      await service.running.database.query(
        `update passes set changed_at = changed_at - interval '16 minutes'`,
      );
      expect(words((await get(page)).text)).not.toContain('Enjoy!');
      await service.running.database.query(
        `update passes set changed_at = changed_at + interval '16 minutes'`,
      );
      await stamp(1);
      await follower.waitUntilCaughtUp();
      expect(words((await get(page)).text)).not.toContain('Enjoy!');
    } finally {
      await follower.stop();
    }
  });

  it('WEBCARD-35 A link to the web card shows a title, a description and a picture in messages', async () => {
    const { page } = await enrol(store, { card: { name: 'Coffee & cake' } });
    const { text } = await get(page);
    expect(text).toContain('<meta property="og:title" content="Coffee &amp; cake · Corner Café">');
    expect(text).toContain('<meta property="og:description" content="Stamp card of Corner Café">');
    const [, picture = ''] = /<meta property="og:image" content="([^"]+)">/.exec(text) ?? [];
    expect(picture).toMatch(/^https:\/\/cards\.example\/img\/strip\//);
    expect((await get(new URL(picture).pathname)).status).toBe(200);
  });
});

describe('the button of the wallet', () => {
  it("WEBCARD-36 After signing up the button of the device's wallet comes first", async () => {
    const { page, customerCard } = await enrol(store);
    const isFirst = (text: string) => text.indexOf('class="wallet') < text.indexOf('<article');
    expect(isFirst((await get(`${page}?joined=1`)).text)).toBe(true);
    const usual = (await get(page)).text;
    expect([isFirst(usual), usual.includes('id="stay"')]).toEqual([false, true]);
    const passes = service.running.app.get(Passes, { strict: false });
    await passes.markInstalled(customerCard.id, store.accountId, 'apple');
    const installed = (await get(`${page}?joined=1`)).text;
    expect([isFirst(installed), installed.includes('id="stay"')]).toEqual([false, false]);
    await passes.markRemoved(customerCard.id, 'apple');
    expect(isFirst((await get(`${page}?joined=1`)).text)).toBe(true);
  });

  it("WEBCARD-37 With `WALLET_BUTTONS_DIR` the web card shows the vendor's own picture for a button, in the language of the store or else in English", async () => {
    const english = (await get((await enrol(store)).page)).text;
    const [, dark, light] =
      /<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"><img src="([^"]+)" alt="Add to Apple Wallet">/.exec(
        english,
      ) ?? [];
    for (const path of [dark, light]) {
      const { status, headers } = await get(path ?? '');
      expect([status, headers.get('content-type')]).toEqual([200, 'image/svg+xml']);
      expect(headers.get('content-security-policy')).toMatch(/default-src 'none'.*sandbox/);
    }
    const german = await service.newStore({ locale: 'de' });
    const page = (await get((await enrol(german)).page)).text;
    expect(page).toMatch(/<img src="\/img\/wallet-button\/apple-de\.[0-9a-f]{16}\.png"/);
    expect(page).not.toContain('<source');
    const french = await service.newStore({ locale: 'fr' });
    expect((await get((await enrol(french)).page)).text).toContain(light);
    expect((await get('/img/wallet-button/apple-en.svg')).status).toBe(404);
    await writeFile(join(folder, 'google-en.svg'), 'no picture');
    await expect(startService({ WALLET_BUTTONS_DIR: folder })).rejects.toThrow(
      /^WALLET_BUTTONS_DIR: .*google-en\.svg cannot be used: it is no SVG picture$/,
    );
  });

  it('WEBCARD-39 With the `barcode_format` `code128` the code is a Code 128, otherwise a QR code', async () => {
    for (const [barcode_format, expected] of [
      [
        'code128',
        /<svg class="qr bars" preserveAspectRatio="none" role="img" aria-label="Barcode of the card \w{8}" viewBox="0 0 143 50"/,
      ],
      [
        'pdf417',
        /<svg class="qr" role="img" aria-label="QR code of the card \w{8}" viewBox="0 0 29 29"/,
      ],
    ] as const) {
      const { page } = await enrol(store, { card: { barcode_format } });
      expect((await get(page)).text).toMatch(expected);
    }
  });
});
