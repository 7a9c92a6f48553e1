import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser as Chromium, Page } from 'playwright-core';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { Browser } from '../support/browser/browser.js';
import { expectAccessiblePage, SIZES, startChromium } from '../support/browser/chromium.js';
import { pageErrors } from '../support/browser/page-errors.mjs';
import { readQrCode } from '../support/browser/qr-codes.js';
import { startService, type Client, type Service } from '../support/services/service.js';

/** Reads posters with programs that others read them with: Debian's poppler-utils, and Chromium. */

const run = promisify(execFile);

let service: Service;
let store: Client;
let browser: Chromium;
let folder: string;
let poster: PosterJson;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  folder = await mkdtemp(join(tmpdir(), 'inkpad-posters-'));
  browser = await startChromium();
  await store.send('PATCH', store.store, {
    account: { locale: 'de', store_name: 'Ærlige Bønner Kaffeerösterei' },
  });
  const card = {
    name: 'Kaffeeklub für Frühaufsteher',
    card_color: '#5B3A29',
    text_color: '#FFF3E0',
    stamp_background_color: '#FFE0B2',
    stamp_icon: 'coffee',
  };
  const { id: card_id } = (await store.post<CardJson>(`${store.store}/cards`, { card })).body;
  for (const [name, stamps_required] of [
    ['Ein Franzbrötchen', 5],
    ['Gratis-Kaffee', 10],
  ] as const) {
    await store.post(`${store.store}/rewards`, { reward: { card_id, name, stamps_required } });
  }
  const response = await store.post<PosterJson>(`${store.store}/posters`, { poster: { card_id } });
  poster = response.body;
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  await rm(folder, { recursive: true, force: true });
});

const getPath = (url: string) => new URL(url).pathname;

async function fetchFile(path: string): Promise<Buffer> {
  const response = await fetch(service.baseUrl + path);
  expect([path, response.status]).toEqual([path, 200]);
  return Buffer.from(await response.arrayBuffer());
}

async function savePdf(path: string): Promise<string> {
  const file = join(folder, 'poster.pdf');
  await writeFile(file, await fetchFile(path));
  return file;
}

async function rasterizePdf(file: string): Promise<Buffer> {
  const page = join(folder, 'page');
  await run('pdftoppm', ['-png', '-r', '150', '-singlefile', file, page]);
  return readFile(`${page}.png`);
}

describe('the PDF of a poster', () => {
  it.each(['a3', 'a4', 'a5', 'a6', 'letter', 'sticker'])(
    'has a QR code that can be read, %s',
    async (size) => {
      for (const bleed of ['false', 'true']) {
        const path = `${getPath(poster.display_url)}.pdf?paper_size=${size}&bleed=${bleed}`;
        expect(await readQrCode(await rasterizePdf(await savePdf(path)))).toBe(poster.qr_code_url);
      }
    },
  );

  it('has one page with text, two embedded fonts, a title and a trim box', async () => {
    const file = await savePdf(`${getPath(poster.display_url)}.pdf?bleed=true`);
    const { stdout: text } = await run('pdftotext', ['-layout', file, '-']);
    for (const sentence of [
      'Ærlige Bønner Kaffeerösterei',
      'Ein Franzbrötchen für 5 Stempel',
      'Gratis-Kaffee für 10 Stempel',
      'Scannen und Stempelkarte holen',
      poster.signup_url.replace('https://', ''),
    ]) {
      expect(text).toContain(sentence);
    }
    expect(text.replace(/\s+/g, ' ')).toContain('Kaffeeklub für Frühaufsteher');
    const { stdout: fonts } = await run('pdffonts', [file]);
    const rows = fonts.trim().split('\n').slice(2);
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(row).toMatch(/^[A-Z]{6}\+Inter-\w+ .* yes yes yes /);
    const { stdout: info } = await run('pdfinfo', ['-box', file]);
    expect(info).toMatch(/^Title: +Kaffeeklub für Frühaufsteher$/m);
    expect(info).toMatch(/^Pages: +1$/m);
    expect(info).toMatch(/^TrimBox: +25\.50 +25\.50 +620\.78 +867\.39$/m);
  });
});

describe('the console', () => {
  it('lists the posters of a store with their links', async () => {
    const otherStore = await service.newStore();
    const card = { name: 'Card <1>' };
    const { id: card_id } = (await otherStore.post<CardJson>(`${otherStore.store}/cards`, { card }))
      .body;
    const path = `/app/stores/${otherStore.accountId}/posters`;
    const console = new Browser(service);
    await console.signIn(otherStore.email, 'correct horse');
    expect((await console.get(path)).text).toContain('No posters yet');
    for (const active of [true, false]) {
      await otherStore.post(`${otherStore.store}/posters`, { poster: { card_id, active } });
    }
    const { status, text } = await console.get(path);
    expect(status).toBe(200);
    expect(text.match(/<h2>Card &lt;1&gt;<\/h2>/g)).toHaveLength(2);
    expect(text.match(/>(Open|Paused)</g)).toEqual(['>Open<', '>Paused<']);
    for (const [, link = ''] of text.matchAll(/href="(\/posters\/[^"]+)"/g)) await fetchFile(link);
    const foreign = await console.get(`/app/stores/${store.accountId}/posters`);
    expect(foreign.status).toBe(404);
  });
});

describe('the page of a poster', () => {
  async function open(): Promise<Page> {
    const page = await browser.newPage({ viewport: SIZES.phone });
    await page.goto(service.baseUrl + getPath(poster.display_url));
    return page;
  }

  it('is accessible and shows a QR code that can be read on every screen size', async () => {
    const page = await open();
    await expectAccessiblePage(page, 'poster');
    await page.locator('details').evaluate((details) => details.setAttribute('open', ''));
    await expectAccessiblePage(page, 'poster-open');
    for (const size of Object.values(SIZES)) {
      await page.setViewportSize(size);
      const picture = await page.locator('.sheet').screenshot();
      expect(await readQrCode(picture)).toBe(poster.qr_code_url);
    }
    await page.close();
  });

  it('prints in three designs as PDF and PNG, all with the same QR code', async () => {
    const page = await open();
    await page.getByText('Plakat zum Drucken').click();
    await page.waitForFunction(
      "[...document.querySelectorAll('.designs img')].filter((image) => image.naturalWidth > 0).length === 3",
    );
    const action = await page.locator('form').getAttribute('action');
    const designs = await page.getByRole('radio').all();
    for (const design of designs) {
      const file = await savePdf(`${action}?design=${await design.getAttribute('value')}`);
      expect(await readQrCode(await rasterizePdf(file))).toBe(poster.qr_code_url);
    }
    await designs.at(-1)?.check();
    await page.getByLabel('Größe').selectOption('Aufkleber');
    await page.getByLabel('für die Druckerei').check();
    // The browser's own page for a picture has styles, which the policy of the picture forbids.
    pageErrors.expect(/inline style/);
    await page.getByRole('button', { name: 'PNG öffnen' }).click();
    expect(new URL(page.url()).search).toBe('?design=dark&paper_size=sticker&bleed=true');
    expect(await readQrCode(await page.locator('img').screenshot())).toBe(poster.qr_code_url);
    await page.close();
  });

  it('prints on one page with the same QR code', async () => {
    const page = await open();
    const file = join(folder, 'printed.pdf');
    await writeFile(file, await page.pdf({ format: 'A4' }));
    const { stdout } = await run('pdfinfo', [file]);
    expect(stdout).toMatch(/^Pages: +1$/m);
    expect(await readQrCode(await rasterizePdf(file))).toBe(poster.qr_code_url);
    await page.close();
  });
});
