import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import sharp from 'sharp';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import { drawFront } from '../support/browser/apple-front.js';
import { keepPicture, startChromium } from '../support/browser/chromium.js';
import { readPass, type ReadPass } from '../support/emulators/apple/pass-reader.mjs';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { saveToGoogle } from '../support/emulators/google/passes.js';
import { startGoogleWallet, type GoogleWallet } from '../support/emulators/google/server.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { photograph, pixelAt, readPixels } from '../support/fixtures/pictures.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Draws fronts of real passes, and checks that a phone would cut off nothing. SCREENSHOTS keeps the pictures. */

const IPHONE = { 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X)' };

let apple: AppleWorld;
let google: GoogleWallet;
let service: LocalService;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  apple = await appleWorld();
  google = await startGoogleWallet();
  service = await startService({ ...google.environment, ...apple.settings });
  browser = await startChromium();
  page = await browser.newPage({ deviceScaleFactor: 2 });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  await google?.stop();
  await apple?.apns.stop();
});

type Names = { locale: string; store: string; member: string; reward: string; card: object };

async function newStore({ locale, store: store_name }: Pick<Names, 'locale' | 'store'>) {
  const store = await service.newStore();
  const { status } = await store.send('PATCH', store.store, { account: { locale, store_name } });
  expect(status).toBe(200);
  return store;
}

async function fetchPass(
  store: Client,
  names: Names,
): Promise<ReadPass & { uuid: string; size: number }> {
  const { customer, customerCard, card, path } = await enrol(store, { card: names.card });
  await store.send('PATCH', `${store.store}/customers/${customer.id}`, {
    customer: { first_name: names.member },
  });
  await store.post(`${store.store}/rewards`, {
    reward: { card_id: card.id, name: names.reward, stamps_required: 8 },
  });
  await store.stamp(path, 4);
  const { pathname } = new URL(customerCard.apple_wallet_url);
  const response = await fetch(service.baseUrl + pathname, { headers: IPHONE });
  expect(response.status).toBe(200);
  const bytes = Buffer.from(await response.arrayBuffer());
  return {
    ...readPass(bytes, apple.certificates.root),
    uuid: customerCard.uuid,
    size: bytes.length,
  };
}

// prettier-ignore
const CASES: [string, Names][] = [
  ['English', {
    locale: 'en', store: 'Corner Café', member: 'Ada Lovelace', reward: 'Free coffee',
    card: { name: 'Coffee card', auxiliary_fields: [{ label: 'Open', value: 'Mo–Sa 8–18' }, { label: 'Phone', value: '+49 721 1234567' }] },
  }],
  ['German', {
    locale: 'de', store: 'Bäckerei Müller', member: 'Karl-Friedrich von Oldenburg', reward: 'Brot',
    card: { name: 'Frühstückskarte', stamp_icon: 'bread', card_color: '#F5E8D0', text_color: '#3E2723', header_text: 'Seit 1912', auxiliary_fields: [{ label: 'Geöffnet', value: 'Mo–Sa' }, { label: 'WLAN', value: 'brot' }] },
  }],
  ['French', {
    locale: 'fr-FR', store: 'Salon Éloïse', member: 'Zoé', reward: 'Soin offert',
    card: { name: 'Carte de fidélité', stamp_icon: 'scissors', card_color: '#5B2A4A', auxiliary_fields: [{ label: 'Ouvert', value: 'mar.–sam.' }, { value: 'Merci !' }] },
  }],
  ['Spanish', {
    locale: 'es-ES', store: 'La Panadería', member: 'María José', reward: 'Pan gratis',
    card: { name: 'Tarjeta de sellos', stamp_icon: 'croissant', card_color: '#14532D', barcode_format: 'code128', auxiliary_fields: [{ label: 'Horario', value: 'Lunes a viernes de 7 a 20, sábados de 8 a 14' }, { label: 'Tel.', value: '+34 91 123 45 67' }] },
  }],
  ['an Arabic name', {
    locale: 'en', store: 'مقهى الزاوية', member: 'عبد الرحمن بن خلدون', reward: 'قهوة مجانية',
    card: { name: 'بطاقة القهوة', card_color: '#0F3D4C', auxiliary_fields: [{ label: 'ساعات', value: '٨–١٨' }, { value: 'أهلا وسهلا' }] },
  }],
  ['emoji', {
    locale: 'en', store: '🍩 Donut Bar 🍩', member: 'Bo 👩‍👩‍👧', reward: 'Free 🍩',
    card: { name: '🍩 club', stamp_icon: 'heart', card_color: '#B0306A', header_text: '💛💛', auxiliary_fields: [{ label: '📍', value: 'Main St' }, { label: '☎️', value: '555 0100' }] },
  }],
  ['long names', {
    locale: 'de', store: 'Konditorei, Bäckerei und Rösterei Wolfeschlegelsteinhausen & Söhne am Marktplatz', member: 'Hubert Blaine Wolfeschlegelsteinhausenbergerdorff senior',
    reward: 'Ein ganzer Kuchen', card: { name: 'Die große Stempelkarte für Frühstück und Kuchen am Wochenende', stamps_required: 21, header_text: 'Herzlich willkommen in unserem Haus', auxiliary_fields: [{ label: 'Öffnungszeiten', value: 'Montag bis Freitag von sechs bis achtzehn Uhr' }, { label: 'Reservierungen unter', value: '+49 (721) 123 456 789 000' }] },
  }],
];

describe('the front of a pass', () => {
  it.each(CASES)('shows everything or leaves it to the back: %s', async (name, names) => {
    const pass = await fetchPass(await newStore(names), names);
    const front = await drawFront(page, pass);
    await keepPicture(page, `apple-front-${name.replaceAll(' ', '-')}`);
    expect(front).toMatchObject({ cutTexts: [], brokenPictures: 0 });
    const back = pass.pass.storeCard.backFields.map(({ value }) => String(value));
    const allTexts = [...front.texts, ...back];
    const card = names.card as {
      name: string;
      header_text?: string;
      auxiliary_fields: { value: string }[];
    };
    for (const text of [
      names.store,
      card.name,
      names.member,
      ...card.auxiliary_fields.map(({ value }) => value),
      ...(card.header_text ? [card.header_text] : []),
    ]) {
      expect(allTexts.some((candidate) => candidate.includes(text))).toBe(true);
    }
  });
});

describe('the logo of a store', () => {
  const RED = [192, 16, 32];
  const drawLogo = (width: number, height: number) =>
    sharp({ create: { width, height, channels: 3, background: '#C01020' } })
      .png()
      .toBuffer();

  it.each([
    ['a square one', 400, 400, 50],
    ['a wide one', 960, 200, 160],
  ])('is in the package and in the class of Google: %s', async (name, width, height, points) => {
    const names = { ...(CASES[0]?.[1] as Names) };
    const store = await newStore(names);
    const bytes = new Uint8Array(await drawLogo(width, height));
    const type = { 'content-type': 'image/png' };
    expect((await store.send<AccountJson>('PUT', `${store.store}/logo`, bytes, type)).status).toBe(
      200,
    );
    const pass = await fetchPass(store, names);
    for (const [suffix, scale] of [
      ['', 1],
      ['@2x', 2],
      ['@3x', 3],
    ] as const) {
      const logo = await readPixels(pass.files.get(`logo${suffix}.png`) ?? Buffer.alloc(0));
      expect(logo.width).toBe(points * scale);
      expect(pixelAt(logo, logo.width / 2, logo.height / 2)).toEqual(RED);
      const icon = await readPixels(pass.files.get(`icon${suffix}.png`) ?? Buffer.alloc(0));
      expect([icon.width, icon.height]).toEqual([29 * scale, 29 * scale]);
      expect(pixelAt(icon, icon.width / 2, icon.height / 2)).toEqual(RED);
    }
    expect(await drawFront(page, pass)).toMatchObject({ cutTexts: [], brokenPictures: 0 });
    await keepPicture(page, `apple-front-with-logo-${name.replaceAll(' ', '-')}`);
    await saveToGoogle(google, store, pass.uuid);
    const logos = [...google.classes.values()].map(
      (record) => (record['programLogo'] as { sourceUri: { uri: string } }).sourceUri.uri,
    );
    const { pathname } = new URL(logos.at(-1) ?? '');
    const response = await fetch(service.baseUrl + pathname);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
    const program = await readPixels(Buffer.from(await response.arrayBuffer()));
    expect([program.width, program.height]).toEqual([660, 660]);
    expect(pixelAt(program, 330, 330)).toEqual(RED);
  });
});

describe('the size of a pass', () => {
  it('is below 300 KB with a photograph behind the stamps, and 16 KB of texts', async () => {
    const names = CASES[6]?.[1] as Names;
    const store = await newStore(names);
    await store.send('PATCH', store.store, {
      account: { terms_text: 't'.repeat(4000), address: 'a'.repeat(500) },
    });
    const picture = new Uint8Array(
      await (await photograph(1125, 432)).jpeg({ quality: 90 }).toBuffer(),
    );
    const { body: card } = await store.post<{ id: number }>(`${store.store}/cards`, {
      card: names.card,
    });
    const put = await store.send('PUT', `${store.store}/cards/${card.id}/strip_image`, picture, {
      'content-type': 'image/jpeg',
    });
    expect(put.status).toBe(200);
    for (let i = 0; i < 25; i++) {
      await store.post(`${store.store}/rewards`, {
        reward: {
          card_id: card.id,
          name: 'n'.repeat(255),
          description: 'd'.repeat(2000),
          stamps_required: 8,
        },
      });
    }
    const { body } = await store.post<{
      customer_card: { apple_wallet_url: string; uuid: string };
    }>(`${store.store}/customers`, {
      customer: { first_name: names.member, email: 'long@example.com' },
      card_id: card.id,
    });
    const { pathname } = new URL(body.customer_card.apple_wallet_url);
    const bytes = Buffer.from(
      await (await fetch(service.baseUrl + pathname, { headers: IPHONE })).arrayBuffer(),
    );
    const { files } = readPass(bytes, apple.certificates.root);
    expect(bytes.length).toBeLessThan(300 * 1024);
    expect(files.get('pass.json')?.length).toBeLessThan(24 * 1024);
    await saveToGoogle(google, store, body.customer_card.uuid);
  });
});
