import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { createStaff, LASTING_OUTCOMES, signInAtCounter } from '../support/browser/counter.js';
import {
  closeContexts,
  expectAccessiblePage,
  keepPicture,
  SIZES,
  startChromium,
} from '../support/browser/chromium.js';
import { writeFakeCamera } from '../support/browser/fake-camera.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests the camera of the counter with a real browser and a film of two QR codes: a menu's, and that of a card. */

const PUBLIC_URL = 'http://cards.localhost';
const FOREIGN = 'https://shop.example/menu';

let service: LocalService;
let store: Client;
let folder: string;
let browser: Browser;
let path: string;
let cardCode: string;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-camera-'));
  service = await startService({ PUBLIC_URL });
  store = await service.newStore();
  const { customerCard, path: cardPath } = await enrol(store);
  path = cardPath;
  cardCode = customerCard.code;
  const film = join(folder, 'film.y4m');
  const more = await writeFakeCamera(film, [{ code: cardCode, beside: FOREIGN, frames: 4 }], 4);
  browser = await startChromium({ 'cards.localhost': service.baseUrl }, more);
});
afterEach(() => closeContexts(contexts));
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the counter. @param script runs before those of the page */
async function openCounter(script = '', { at = browser, locale = 'en-GB' } = {}): Promise<Page> {
  const context = await at.newContext({ viewport: SIZES.phone, locale });
  contexts.push(context);
  await context.addInitScript({ content: `${LASTING_OUTCOMES}\n${script}` });
  const page = await context.newPage();
  const { email } = await createStaff(service, store, 'Mira');
  await signInAtCounter(page, `${PUBLIC_URL}/counter/${store.accountId}`, email);
  return page;
}

/** Waits until the card was read: it is stamped, or asked about because it was stamped a moment ago. */
const expectCard = (page: Page) =>
  page
    .locator('#result')
    .getByText(/(of|von|sur|de) 10/)
    .first()
    .waitFor();

/** Closes the outcome, and waits until the same card counts as another scan. */
async function forgetScan(page: Page): Promise<void> {
  await page.keyboard.press('Escape');
  await page.evaluate('codes.lastSeen = { code: "", at: 0 }; undefined');
}

/** Waits until the page says something about the camera. */
const expectText = (page: Page, text: string) => page.locator('#say').getByText(text).waitFor();
const retry = (page: Page) => page.getByRole('button', { name: 'Turn on the camera' });
const withTrack = (act: string) =>
  `{ const [track] = document.getElementById('camera').srcObject.getTracks(); ${act} } undefined`;

/** Replaces the reader of the browser. */
const replaceReader = (members: string) => `globalThis.BarcodeDetector = class {
  static getSupportedFormats() { return Promise.resolve(['qr_code']); }
  ${members}
};`;

describe('the camera of the counter', () => {
  it('takes the first card of a frame, though another code is beside it', async () => {
    const page = await openCounter();
    await expectCard(page);
    const { body } = await store.get<CustomerCardDetailJson>(path);
    expect(body.stamps_count).toBe(1);
  });

  it('takes the first card of all that the reader of the browser has found', async () => {
    const page = await openCounter(
      replaceReader(`detect() {
        const texts = ['', '${FOREIGN}', '${cardCode.toLowerCase()}', 'ZZZZZZZZ'];
        return Promise.resolve(texts.map((rawValue) => ({ rawValue })));
      }`),
    );
    await expectCard(page);
    expect(await page.evaluate('"ZXingWASM" in globalThis')).toBe(false);
  });

  it.each([
    ['rejects every frame', 'detect() { return Promise.reject(new Error("no service")); }'],
    ['throws at every frame', 'detect() { throw new Error("no service"); }'],
    ['never says anything about a frame', 'detect() { return new Promise(() => {}); }'],
    ['cannot be created', 'constructor() { throw new TypeError("no formats"); }'],
    [
      'cannot name its formats',
      'static getSupportedFormats() { return Promise.reject(new Error("no")); }',
    ],
    ['never names its formats', 'static getSupportedFormats() { return new Promise(() => {}); }'],
    ['knows no QR codes', 'static getSupportedFormats() { return Promise.resolve(["code_128"]); }'],
  ])('reads with the decoder of the page when that of the browser %s', async (_, members) => {
    await expectCard(await openCounter(replaceReader(members)));
  });

  it.each([
    ['has ended', 'track.stop();'],
    ['says that it has ended', 'track.dispatchEvent(new Event("ended"));'],
    ['gives no picture for a while', 'track.dispatchEvent(new Event("mute"));'],
  ])('says when it %s, and tries again by a button', async (_, act) => {
    const page = await openCounter();
    await expectCard(page);
    await page.evaluate(withTrack(act));
    await expectText(page, 'The camera has stopped.');
    await page.keyboard.press('Escape');
    await retry(page).click();
    await forgetScan(page);
    await expectCard(page);
    expect(await retry(page).isHidden()).toBe(true);
  });

  it('goes on by itself when another app has given the picture back', async () => {
    const page = await openCounter();
    await expectCard(page);
    await page.evaluate(withTrack('track.dispatchEvent(new Event("mute"));'));
    await expectText(page, 'The camera has stopped.');
    await page.evaluate(withTrack('track.dispatchEvent(new Event("unmute"));'));
    await expectText(page, 'Hold the QR code');
  });

  it('starts by itself when a camera is plugged in', async () => {
    const page =
      await openCounter(`if (navigator.mediaDevices) navigator.mediaDevices.getUserMedia = () =>
      Promise.reject(new DOMException('none', 'NotFoundError'));`);
    await expectText(page, 'No camera was found.');
    await page.evaluate(`delete navigator.mediaDevices.getUserMedia;
      navigator.mediaDevices.dispatchEvent(new Event('devicechange'))`);
    await expectCard(page);
  });

  it('says that another app uses it, and shows a picture that could not be played at first', async () => {
    const page = await openCounter(`if (navigator.mediaDevices) {
      const { getUserMedia } = MediaDevices.prototype;
      let isBusy = true;
      MediaDevices.prototype.getUserMedia = function (constraints) {
        if (!isBusy) return getUserMedia.call(this, constraints);
        isBusy = false;
        return Promise.reject(new DOMException('busy', 'NotReadableError'));
      };
      const { play } = HTMLMediaElement.prototype;
      let isRefused = true;
      HTMLMediaElement.prototype.play = function () {
        if (!isRefused) return play.call(this);
        isRefused = false;
        return Promise.reject(new DOMException('no gesture', 'NotAllowedError'));
      };
    }`);
    await expectText(page, 'Another app is using the camera.');
    await retry(page).click();
    await expectText(page, 'The camera does not work right now.');
    expect(await page.evaluate('document.getElementById("camera").srcObject')).toBeNull();
    await retry(page).click();
    await expectCard(page);
  });

  it('says when neither reader works', async () => {
    const page = await openCounter(
      `${replaceReader('detect() { return Promise.reject(new Error("no")); }')}
       Object.defineProperty(globalThis, 'ZXingWASM', { set() {}, get: () => ({
         prepareZXingModule() {}, readBarcodes: () => Promise.reject(new Error('no module')),
       }) });`,
    );
    await expectText(page, 'The camera does not work right now.');
  });

  it('stops while the page is hidden, and starts when it is shown again', async () => {
    const page = await openCounter();
    await expectCard(page);
    const show = (state: string) =>
      page.evaluate(`Object.defineProperty(document, 'visibilityState', {
          configurable: true, get: () => '${state}' });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await show('hidden');
    expect(await page.evaluate('document.getElementById("camera").srcObject')).toBeNull();
    await forgetScan(page);
    await show('visible');
    await show('hidden');
    await show('visible');
    await expectCard(page);
  });

  it('explains how to allow it, and starts once it is allowed', async () => {
    const film = join(folder, 'film.y4m');
    const asking = await startChromium({ 'cards.localhost': service.baseUrl }, [
      '--use-fake-device-for-media-stream',
      `--use-file-for-fake-video-capture=${film}`,
    ]);
    try {
      const page = await openCounter('', { at: asking });
      await expectText(page, 'The browser keeps this page from using the camera.');
      await keepPicture(page, 'counter-camera-denied');
      await expectAccessiblePage(page, 'counter-camera-denied');
      await page.context().grantPermissions(['camera'], { origin: PUBLIC_URL });
      await expectCard(page);
    } finally {
      await asking.close();
    }
  });

  it('says why it is of no use in the language of the browser', async () => {
    for (const [locale, ended, again] of [
      ['de-DE', 'Die Kamera ist ausgegangen.', 'Kamera einschalten'],
      ['fr-FR', 'La caméra s’est arrêtée.', 'Allumer la caméra'],
      ['es-ES', 'La cámara se ha detenido.', 'Encender la cámara'],
    ] as const) {
      const page = await openCounter('', { locale });
      await expectCard(page);
      await page.evaluate(withTrack('track.stop();'));
      await expectText(page, ended);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: again }).waitFor();
    }
  });
});
