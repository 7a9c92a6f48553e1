import { describe, expect, it } from '@jest/globals';
import { inflateSync } from 'node:zlib';
import sharp from 'sharp';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { useSharedService, type ContractClient } from '../support/http/contract.js';
import { readQrCode } from '../support/browser/qr-codes.js';

const service = useSharedService();

/** A public document, without a token. */
async function fetched(url: string, headers: Record<string, string> = {}) {
  const { pathname, search } = new URL(url);
  const response = await fetch(service.running.baseUrl + pathname + search, { headers });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

async function newPoster(input: object = {}) {
  const store = await service.newStore();
  const card = { name: 'Coffee club', stamp_icon: 'coffee' };
  const response = await store.post<CardJson>(`${store.store}/cards`, { card });
  const { id: card_id } = response.body;
  const { body: poster } = await store.post<PosterJson>(`${store.store}/posters`, {
    poster: { card_id, ...input },
  });
  const path = `${store.store}/posters/${poster.id}`;
  return { store, card: response.body, poster, path };
}

/** Reads the font sizes of a PDF from its content streams. */
function readFontSizes(pdf: Buffer): number[] {
  const streams = pdf.toString('latin1').matchAll(/stream\r?\n([\s\S]*?)\r?\nendstream/g);
  return [...streams].flatMap(([, stream = '']) => {
    const bytes = Buffer.from(stream, 'latin1');
    let text: string;
    try {
      text = inflateSync(bytes).toString('latin1');
    } catch {
      // Not every stream is compressed in this way, such as that of a font.
      return [];
    }
    return [...text.matchAll(/\/F\d+ ([\d.]+) Tf/g)].map(([, size]) => Number(size));
  });
}

const etagOf = async (url: string) => (await fetched(url)).response.headers.get('etag');

const rename = (store: ContractClient, card: CardJson, name: string) =>
  store.patch(`${store.store}/cards/${card.id}`, { card: { name } });

describe('the documents of posters', () => {
  it('POSTER-36 The PDF and the PNG of a poster show a QR code with `qr_code_url`', async () => {
    const { poster } = await newPoster({ primary_color: '#102030', text_color: '#102030' });
    const pdf = await fetched(`${poster.display_url}.pdf`);
    expect(pdf.response.status).toBe(200);
    expect(pdf.response.headers.get('content-type')).toBe('application/pdf');
    expect(pdf.bytes.subarray(0, 5).toString()).toBe('%PDF-');
    const png = await fetched(`${poster.display_url}.png`);
    expect(png.response.headers.get('content-type')).toBe('image/png');
    expect(await readQrCode(png.bytes)).toBe(poster.qr_code_url);
  });

  it('POSTER-37 The PDF and the PNG of a poster have the `paper_size` of the query or else its own; a PNG has 300 dots per inch', async () => {
    const { poster } = await newPoster({ paper_size: 'a6' });
    const size = async (query: string) => {
      const { width, height } = await sharp(
        (await fetched(`${poster.display_url}.png${query}`)).bytes,
      ).metadata();
      return [width, height];
    };
    expect(await size('')).toEqual([1240, 1748]);
    expect(await size('?paper_size=a5')).toEqual([1748, 2480]);
    expect(await size('?paper_size=letter')).toEqual([2550, 3300]);
    const { bytes } = await fetched(`${poster.display_url}.pdf?paper_size=a4`);
    expect(bytes.toString('latin1')).toContain('/MediaBox [0 0 595.28 841.89]');
    for (const query of [
      'paper_size=a2',
      'paper_size=A4',
      'paper_size=a4&paper_size=a5',
      'bleed=1',
    ]) {
      const { response } = await fetched(`${poster.display_url}.pdf?${query}`);
      expect([query, response.status]).toEqual([query, 404]);
    }
  });

  it('POSTER-44 A table tent is a sheet of A4 with the poster on both halves, to be folded in the middle; a sticker is 100 mm square', async () => {
    const { poster } = await newPoster({ paper_size: 'table_tent' });
    const { bytes } = await fetched(`${poster.display_url}.png`);
    const tent = sharp(bytes);
    const { width, height } = await tent.metadata();
    expect([width, height]).toEqual([2480, 3508]);
    const half = { left: 0, width: 2480, height: 1754 };
    const lower = await sharp(bytes)
      .extract({ ...half, top: 1754 })
      .png()
      .toBuffer();
    const upper = await sharp(bytes)
      .extract({ ...half, top: 0 })
      .rotate(180)
      .png()
      .toBuffer();
    for (const face of [lower, upper]) expect(await readQrCode(face)).toBe(poster.qr_code_url);
    const sticker = await fetched(`${poster.display_url}.png?paper_size=sticker`);
    expect(await sharp(sticker.bytes).metadata()).toMatchObject({ width: 1181, height: 1181 });
    expect(await readQrCode(sticker.bytes)).toBe(poster.qr_code_url);
  });

  it('POSTER-45 No text of a document is smaller than 7 points: rewards that do not fit are left out', async () => {
    const { store, card, poster } = await newPoster({ paper_size: 'a6', title: 'W'.repeat(80) });
    const name = 'A whole cake of your choice, with candles and a table for eight on a Sunday';
    for (const stamps_required of [3, 6, 10]) {
      const reward = { card_id: card.id, name, stamps_required };
      await store.post(`${store.store}/rewards`, { reward });
    }
    const { bytes } = await fetched(`${poster.display_url}.pdf`);
    const sizes = readFontSizes(bytes);
    expect(sizes.length).toBeGreaterThan(3);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(6.99);
  });

  it('POSTER-47 The documents show texts in every living script with its own direction, and emoji in the colour of the text', async () => {
    const { store, path, poster } = await newPoster({ paper_size: 'a6', title: '10 = 1' });
    expect(poster.warnings).toEqual([]);
    const draw = async (title: string) => {
      const { body } = await store.patch<PosterJson>(path, { poster: { title } });
      const { response, bytes } = await fetched(`${poster.display_url}.png`);
      expect(response.status).toBe(200);
      expect((await fetched(`${poster.display_url}.pdf`)).response.status).toBe(200);
      return { png: bytes, warnings: body.warnings };
    };
    const plain = await draw('10 = 1');
    for (const title of [
      '10 ☕ = 1',
      'بطاقة ولاء',
      'כרטיס',
      '第10杯 = 1',
      '무료',
      'ฟรี',
      'मुफ़्त',
      'უფასო',
    ]) {
      const { png, warnings } = await draw(title);
      expect(warnings).toEqual([]);
      expect(png.equals(plain.png)).toBe(false);
      expect(await readQrCode(png)).toBe(poster.qr_code_url);
    }
    const { png, warnings } = await draw('10 = 1 ᎠᏂ');
    expect(png.equals(plain.png)).toBe(true);
    expect(warnings).toEqual([
      { code: 'text_left_out', message: expect.stringContaining('Ꭰ Ꮒ of the title "10 = 1 ᎠᏂ"') },
    ]);
  });

  it("POSTER-46 `design` in a document's query chooses how it is drawn: `rewards` as without it, `code` with a larger code instead of stamps and rewards, `dark` in light letters on a dark ground", async () => {
    const { poster } = await newPoster({ primary_color: '#F4E3C1', paper_size: 'a6' });
    const draw = async (query: string) =>
      (await fetched(`${poster.display_url}.png${query}`)).bytes;
    const [plain, rewards] = [await draw(''), await draw('?design=rewards')];
    expect(rewards.equals(plain)).toBe(true);
    const readGround = async (png: Buffer) => {
      const corner = sharp(png).extract({ left: 0, top: 0, width: 1, height: 1 });
      return [...(await corner.raw().toBuffer())];
    };
    const [code, dark] = [await draw('?design=code'), await draw('?design=dark')];
    expect(await Promise.all([plain, code, dark].map(readGround))).toEqual([
      [0xf4, 0xe3, 0xc1],
      [0xf4, 0xe3, 0xc1],
      [0x17, 0x15, 0x1a],
    ]);
    for (const png of [code, dark]) expect(await readQrCode(png)).toBe(poster.qr_code_url);
    for (const query of ['design=light', 'design=code&design=dark']) {
      const { response } = await fetched(`${poster.display_url}.pdf?${query}`);
      expect([query, response.status]).toEqual([query, 404]);
    }
  });

  it('POSTER-38 `bleed=true` adds 8.5 points of bleed and crop marks; a PDF names both as TrimBox and BleedBox', async () => {
    const { poster } = await newPoster();
    const { bytes } = await fetched(`${poster.display_url}.pdf?bleed=true`);
    const text = bytes.toString('latin1');
    expect(text).toContain('/TrimBox [25.5 25.5 620.78 867.39]');
    expect(text).toContain('/BleedBox [17 17 629.28 875.89]');
    const plain = await fetched(`${poster.display_url}.pdf?bleed=false`);
    expect(plain.bytes.equals((await fetched(`${poster.display_url}.pdf`)).bytes)).toBe(true);
  });

  it('POSTER-39 A document has an ETag, and is the same, byte by byte, until something that it shows changes', async () => {
    const { store, card, poster, path } = await newPoster();
    const url = `${poster.display_url}.pdf`;
    const { response, bytes } = await fetched(url);
    const etag = response.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[0-9a-f]{64}"$/);
    expect(response.headers.get('cache-control')).toBe('public, no-cache');
    for (const ifNoneMatch of [etag, `"other", W/${etag}`]) {
      const again = await fetched(url, { 'if-none-match': ifNoneMatch });
      expect([again.response.status, again.bytes.length]).toEqual([304, 0]);
    }
    await rename(store, card, 'Another name');
    await store.patch(path, { poster: { active: false } });
    expect((await fetched(url, { 'if-none-match': '"other"' })).bytes.equals(bytes)).toBe(true);
    expect(await etagOf(url)).toBe(etag);
    await store.patch(path, { poster: { title: 'Join us' } });
    const changed = await etagOf(url);
    expect(changed).not.toBe(etag);
    await store.post(`${store.store}/rewards`, {
      reward: { card_id: card.id, name: 'Free coffee', stamps_required: 10 },
    });
    expect(await etagOf(url)).not.toBe(changed);
  });

  it('POSTER-40 The page and the documents of inactive posters and archived cards are served; those of deleted and unknown posters are 404', async () => {
    const { store, card, poster, path } = await newPoster({ active: false });
    await store.post(`${store.store}/cards/${card.id}/archive`);
    expect((await fetched(`${poster.display_url}.png`)).response.status).toBe(200);
    await store.delete(path);
    for (const url of [poster.display_url, poster.display_url.replace(/.{3}$/, 'abc')]) {
      for (const end of ['.pdf', '.png', '.gif', '.pdf.png', '%00.png', '']) {
        const { response } = await fetched(url + end);
        expect([end, response.status]).toEqual([end, 404]);
      }
    }
  });

  it('POSTER-41 The page at `display_url` shows the poster and links to `signup_url`, while it is active, or says that sign-up is closed, and offers the documents in every design and size', async () => {
    const { store, poster, path } = await newPoster({ title: '<b>Kaffee</b> & Kuchen' });
    await store.patch(store.store, { account: { locale: 'de', store_name: 'Café "Eck"' } });
    const show = async () => (await fetched(poster.display_url)).bytes.toString();
    const { response } = await fetched(poster.display_url);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const page = await show();
    expect(page).toContain('<html lang="de">');
    expect(page).toContain('<h1 dir="auto">&lt;b&gt;Kaffee&lt;/b&gt; &amp; Kuchen</h1>');
    expect(page).not.toContain('<b>');
    expect(page).toContain(`href="${new URL(poster.signup_url).pathname}"`);
    const at = new URL(poster.display_url).pathname;
    const actions = [...page.matchAll(/action="([^"]+)"/g)].map(([, action]) => action);
    expect(actions).toEqual([`${at}.pdf`, `${at}.png`]);
    const list = (pattern: RegExp) => [...page.matchAll(pattern)].map(([, value]) => value ?? '');
    const designs = list(/name="design" value="(\w+)"/g);
    const sizes = list(/<option value="?(\w+)/g);
    expect([designs.length, sizes.length]).toEqual([3, 7]);
    for (const query of [
      ...designs.map((design) => `design=${design}&bleed=true`),
      ...sizes.map((size) => `paper_size=${size}`),
    ]) {
      const { response } = await fetched(`https://cards.example${at}.pdf?${query}`);
      expect([query, response.status]).toEqual([query, 200]);
    }
    await store.patch(path, { poster: { active: false } });
    const paused = await show();
    expect(paused).not.toContain('/join/');
    expect(paused).toContain('Die Anmeldung ist gerade geschlossen');
    await store.patch(path, { poster: { active: true } });
    const card = `${store.store}/cards/${poster.card_id}`;
    await store.patch(card, { card: { expires_at: '2020-01-01T00:00:00Z' } });
    expect(await show()).toContain('Die Anmeldung ist gerade geschlossen');
    await store.patch(card, { card: { expires_at: null } });
    expect(await show()).toContain('/join/');
    await store.post(`${card}/archive`);
    expect(await show()).toContain('Die Anmeldung ist gerade geschlossen');
    await store.delete(path);
    const gone = await fetched(poster.display_url, { accept: 'text/html' });
    expect([gone.response.status, gone.response.headers.get('content-type')]).toEqual([
      404,
      'text/html; charset=utf-8',
    ]);
  });

  it('POSTER-42 Page, PDF and PNG are each served 60 times a minute for an IP address, then 429', async () => {
    const url = 'https://cards.example/posters/unknown';
    const statuses: number[] = [];
    for (let i = 0; i < 61; i++) statuses.push((await fetched(`${url}.png`)).response.status);
    expect(statuses.at(-1)).toBe(429);
    expect((await fetched(`${url}.pdf`)).response.status).not.toBe(429);
  });
});
