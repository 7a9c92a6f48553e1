import { describe, expect, it } from '@jest/globals';
import sharp from 'sharp';
import type { AccountJson } from '#loyalty/accounts/account.dto.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { newPoster } from '../support/browser/signup.js';
import { pixelAt, readPixels } from '../support/fixtures/pictures.js';
import { expectFailure, expectRefused, useSharedService } from '../support/http/contract.js';

const service = useSharedService();
const store = service.useStore();

const change = (account: object, client = store) =>
  client.patch<AccountJson>(client.store, { account });

const CONTACT = {
  website: 'https://cafe.example/menu',
  phone: '+49 721 123456',
  email: 'hello@cafe.example',
  address: 'Main Street 1\n76133 Karlsruhe',
  terms_text: 'One stamp for each drink.\nNot for take-away.',
};

const put = (bytes: Uint8Array, type = 'image/png', client = store, query = '') =>
  client.send<AccountJson>('PUT', `${client.store}/logo${query}`, new Uint8Array(bytes), {
    'content-type': type,
  });
const remove = (client = store) => client.send<AccountJson>('DELETE', `${client.store}/logo`);

/** Draws a bar of one colour on transparent ground, with room around it. */
const drawLogo = (color: string, width = 300, height = 100) =>
  sharp(
    Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width + 80}" height="${height + 80}"><rect x="40" y="40" width="${width}" height="${height}" rx="8" fill="${color}"/></svg>`,
    ),
  )
    .png()
    .toBuffer();

/** Pictures whose edges have colours of their own: stripes, upright or level. */
const STRIPES = [
  ['an upright flag', ['#008C45', '#FFFFFF', '#CD212A'], 'v', [300, 198]],
  ['a level flag', ['#FFFFFF', '#0033A0', '#CD212A'], 'h', [300, 198]],
  ['a flag with black', ['#000000', '#FFD90C', '#EF3340'], 'v', [300, 198]],
  ['halves', ['#FFFFFF', '#DC143C'], 'h', [300, 198]],
  ['a banner with a dark block', ['#102030', '#F4E3C1', '#F4E3C1', '#F4E3C1'], 'v', [400, 100]],
] as const;

async function fetchPicture(url: string) {
  const response = await fetch(service.running.baseUrl + new URL(url, 'http://x').pathname);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, type: response.headers.get('content-type'), bytes };
}

const read = async (path: string) => (await fetch(service.running.baseUrl + path)).text();

describe('contact details', () => {
  it('STORE-31 PATCH changes `website`, `phone`, `email`, `address` and `terms_text`. null or a blank string clears each', async () => {
    const { status, body } = await change(CONTACT);
    expect([status, body]).toEqual([200, expect.objectContaining(CONTACT)]);
    expect((await store.get(store.store)).body).toEqual(body);
    const cleared = await change({
      website: null,
      phone: ' ',
      email: '',
      address: null,
      terms_text: '',
    });
    expect(cleared.body).toMatchObject({
      website: null,
      phone: null,
      email: null,
      address: null,
      terms_text: null,
    });
  });

  it('STORE-32 `website` is stored as URL parsers write it; without a scheme it gets `https`', async () => {
    expect((await change({ website: 'Cafe.example' })).body.website).toBe('https://cafe.example/');
    expect((await change({ website: 'http://cafe.example/größe' })).body.website).toBe(
      'http://cafe.example/gr%C3%B6%C3%9Fe',
    );
    for (const website of [
      'ftp://cafe.example',
      'javascript:alert(1)',
      'cafe',
      'a b.example',
      'https://a:b@cafe.example',
      'https://cafe.example/#menu',
    ]) {
      expectRefused(await change({ website }), 'website');
    }
  });

  it('STORE-33 A `phone` that cannot be dialled is 422 `phone`, and an `email` that is no address 422 `email`', async () => {
    for (const phone of ['call us', '12', '+49 721 FLOWERS']) {
      expectRefused(await change({ phone }), 'phone');
    }
    for (const email of ['cafe', 'a@b', 'hello@cafe.example, other@cafe.example']) {
      expectRefused(await change({ email }), 'email');
    }
  });

  it('STORE-34 `website` may have 2048 characters, `phone` 40, `email` 254, `address` 500 and `terms_text` 4000; more is 422 on the field', async () => {
    expect((await change({ address: 'é'.repeat(500), terms_text: 'x'.repeat(4000) })).status).toBe(
      200,
    );
    const tooLong = {
      website: `https://cafe.example/${'x'.repeat(2048)}`,
      phone: '1'.repeat(41),
      email: `${'x'.repeat(250)}@cafe.example`,
      address: 'x'.repeat(501),
      terms_text: 'x'.repeat(4001),
    };
    for (const [name, value] of Object.entries(tooLong)) {
      expectRefused(await change({ [name]: value }), name);
    }
  });

  it("STORE-35 A store's contact details and terms stand below the card in the browser and on the back of passes, in its language", async () => {
    const german = await service.newStore();
    await change({ ...CONTACT, locale: 'de' }, german);
    const text = await read((await enrol(german)).page);
    for (const part of [
      '<h2 id="contact">Kontakt</h2>',
      'href="https://cafe.example/menu">cafe.example/menu</a>',
      'href="tel:+49721123456">+49 721 123456</a>',
      'href="mailto:hello@cafe.example"',
      'Main Street 1<br>76133 Karlsruhe',
      '<summary>Bedingungen</summary>',
      'Not for take-away.',
    ]) {
      expect(text).toContain(part);
    }
  });
});

describe('the logo', () => {
  it('LOGO-01 The response to a logo is the store, whose `logo_url` serves the logo as a PNG without a token', async () => {
    expect((await store.get<AccountJson>(store.store)).body.logo_url).toBeNull();
    const { status, body } = await put(await drawLogo('#C01020'));
    expect(status).toBe(200);
    expect((await store.get(store.store)).body).toEqual(body);
    const picture = await fetchPicture(body.logo_url ?? '');
    expect([picture.status, picture.type]).toEqual([200, 'image/png']);
  });

  it('LOGO-02 A logo may be PNG, JPEG or WebP of at most 2 MiB and 25 megapixels, checked as the picture of a strip is; errors are on `logo`', async () => {
    const logo = sharp(await drawLogo('#C01020')).flatten({ background: '#FFFFFF' });
    for (const type of ['png', 'jpeg', 'webp'] as const) {
      const bytes = await logo.clone().toFormat(type).toBuffer();
      expect((await put(bytes, `image/${type}`)).status).toBe(200);
      expect((await put(bytes, 'application/octet-stream')).status).toBe(200);
    }
    expectFailure(await put(Buffer.from('<svg/>'), 'image/svg+xml'), 415, 'unsupported_media_type');
    expectRefused(await put(Buffer.from('no picture')), 'logo');
    expectRefused(await put(Buffer.alloc(0)), 'logo');
    expectFailure(await put(Buffer.alloc(2 * 1024 * 1024 + 1)), 413, 'payload_too_large');
    const large = sharp({ create: { width: 5001, height: 5000, channels: 3, background: '#FFF' } });
    expectRefused(await put(await large.png().toBuffer()), 'logo');
  });

  it('LOGO-03 A logo is turned upright, a transparent margin is cut off, or else a white one on all four sides, and it is made to fit into 1200 by 600 pixels', async () => {
    const bar = await readPixels(
      (await fetchPicture((await put(await drawLogo('#C01020'))).body.logo_url ?? '')).bytes,
    );
    expect([bar.width, bar.height]).toEqual([300, 100]);
    const { body } = await put(await drawLogo('#C01020', 3000, 500));
    const { bytes } = await fetchPicture(body.logo_url ?? '');
    const { width, height, hasAlpha } = await sharp(bytes).metadata();
    expect([width, height, hasAlpha]).toEqual([1200, 200, true]);
    const turned = await sharp(await drawLogo('#C01020', 100, 300))
      .flatten({ background: '#FFFFFF' })
      .withMetadata({ orientation: 6 })
      .jpeg({ quality: 100 })
      .toBuffer();
    const upright = await fetchPicture((await put(turned, 'image/jpeg')).body.logo_url ?? '');
    const size = await sharp(upright.bytes).metadata();
    expect(size.width).toBeGreaterThan(size.height ?? 0);
    for (const [what, colors, way, [width, height]] of STRIPES) {
      const bars = colors.map((color, i) => {
        const share = 1 / colors.length;
        return way === 'v'
          ? `<rect x="${i * share * width}" width="${share * width}" height="${height}" fill="${color}"/>`
          : `<rect y="${i * share * height}" width="${width}" height="${share * height}" fill="${color}"/>`;
      });
      const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${bars.join('')}</svg>`;
      for (const type of ['png', 'jpeg', 'webp'] as const) {
        const picture = sharp(Buffer.from(svg)).flatten().toFormat(type, { quality: 95 });
        const { body } = await put(await picture.toBuffer(), `image/${type}`);
        const pixels = await readPixels((await fetchPicture(body.logo_url ?? '')).bytes);
        expect([what, type, pixels.width, pixels.height]).toEqual([what, type, width, height]);
      }
    }
  });

  it('LOGO-04 Sending the same logo again changes nothing', async () => {
    const logo = await drawLogo('#0A5050');
    const first = await put(logo);
    expect((await put(logo)).body).toEqual(first.body);
  });

  it('LOGO-05 DELETE makes `logo_url` null, and may be repeated', async () => {
    await put(await drawLogo('#0A5050'));
    const { status, body } = await remove();
    expect([status, body.logo_url]).toEqual([200, null]);
    expect((await remove()).body).toEqual(body);
  });

  it('LOGO-07 The card in the browser shows the logo, with the icons of its manifest, and so does the signup page', async () => {
    const own = await service.newStore();
    expect((await put(await drawLogo('#FFFFFF'), 'image/png', own)).status).toBe(200);
    const { page } = await enrol(own, { card: { card_color: '#3E2723' } });
    const card = await read(page);
    const [, onCard = ''] = /<img class="logo" src="([^"]+)"/.exec(card) ?? [];
    expect((await fetchPicture(onCard)).type).toBe('image/png');
    expect(card).toMatch(/<link rel="icon" type="image\/png" href="\/img\/brand\//);
    const manifest = JSON.parse(await read(`${page}/manifest.webmanifest`)) as {
      icons: { src: string; sizes: string }[];
    };
    for (const { src, sizes } of manifest.icons) {
      const { width, height } = await sharp((await fetchPicture(src)).bytes).metadata();
      expect(`${width}x${height}`).toBe(sizes);
    }
    const poster = await newPoster(own);
    const signup = await read(new URL(poster.signup_url).pathname);
    const [, onSignup = ''] = /<img class="store-logo" src="([^"]+)"/.exec(signup) ?? [];
    expect((await fetchPicture(onSignup)).type).toBe('image/png');
  });

  it('LOGO-08 Where most of a logo could not be seen on the colour of its place, it is drawn on white or black', async () => {
    const own = await service.newStore();
    expect((await put(await drawLogo('#3E2723'), 'image/png', own)).status).toBe(200);
    const drawn = async (card_color: string) => {
      const text = await read((await enrol(own, { card: { card_color } })).page);
      const [, src = ''] = /<img class="logo" src="([^"]+)"/.exec(text) ?? [];
      const pixels = await readPixels((await fetchPicture(src)).bytes);
      return pixelAt(pixels, pixels.width / 2, 2);
    };
    expect(await drawn('#3A2A20')).toEqual([255, 255, 255]);
    expect(await drawn('#F5E8D0')).toEqual([62, 39, 35]);
  });

  it('LOGO-09 The drawings of a logo stand at `/img/brand/:hash/:size.png`', async () => {
    const own = await service.newStore();
    expect((await put(await drawLogo('#FFFFFF'), 'image/png', own)).status).toBe(200);
    const text = await read((await enrol(own)).page);
    const [, folder = ''] = /src="(\/img\/brand\/[0-9a-f]{32})\/wide@1x[.]png"/.exec(text) ?? [];
    for (const [size, width, height] of [
      ['wide@1x', 150, 50],
      ['wide@3x', 450, 150],
      ['icon@1x', 29, 29],
      ['icon@3x', 87, 87],
      ['program', 660, 660],
    ] as const) {
      const picture = await sharp((await fetchPicture(`${folder}/${size}.png`)).bytes).metadata();
      expect([size, picture.width, picture.height]).toEqual([size, width, height]);
    }
    expect((await fetchPicture(`${folder}/huge.png`)).status).toBe(404);
    expect((await fetchPicture(`/img/brand/${'0'.repeat(32)}/icon@1x.png`)).status).toBe(404);
    expect((await fetchPicture(`/img/store/${'0'.repeat(64)}.png`)).status).toBe(404);
  });

  it('LOGO-10 `PUT …/logo?keep_margin=true` keeps the margin too', async () => {
    const own = await service.newStore();
    const size = async ({ body }: { body: AccountJson }) => {
      const { bytes } = await fetchPicture(body.logo_url ?? '');
      const { width, height } = await sharp(bytes).metadata();
      return [width, height];
    };
    const draw = async (background: string, gravity: 'centre' | 'northwest') => {
      const input = await sharp({
        create: { width: 60, height: 30, channels: 3, background: '#0A0' },
      })
        .png()
        .toBuffer();
      return sharp({ create: { width: 400, height: 200, channels: 4, background } })
        .composite([{ input, gravity }])
        .png()
        .toBuffer();
    };
    const centred = await draw('#FFFFFF', 'centre');
    expect(await size(await put(centred, 'image/png', own))).toEqual([60, 30]);
    expect(await size(await put(centred, 'image/png', own, '?keep_margin=true'))).toEqual([
      400, 200,
    ]);
    const clear = await draw('#FFFFFF00', 'northwest');
    expect(await size(await put(clear, 'image/png', own))).toEqual([60, 30]);
    expect(await size(await put(clear, 'image/png', own, '?keep_margin=true'))).toEqual([400, 200]);
    expect(await size(await put(await draw('#FFFFFF', 'northwest'), 'image/png', own))).toEqual([
      400, 200,
    ]);
    expect(await size(await put(await draw('#E8DCC8', 'centre'), 'image/png', own))).toEqual([
      400, 200,
    ]);
    expectRefused(await put(centred, 'image/png', own, '?keep_margin=perhaps'), 'keep_margin');
  });

  it("LOGO-11 The store's name stands beside its logo on posters, the signup page, the card in the browser and Apple's pass, unless `logo_contains_name` of the store is true", async () => {
    const own = await service.newStore();
    await change({ store_name: 'Café Luisa' }, own);
    const { body } = await put(await drawLogo('#C01020'), 'image/png', own);
    expect(body.logo_contains_name).toBe(false);
    const { page } = await enrol(own);
    const poster = await newPoster(own);
    const drawings = async () => {
      const { pathname } = new URL(poster.display_url);
      const { bytes } = await fetchPicture(`${pathname}.png`);
      return Buffer.from(bytes);
    };
    const named = /<p>Café Luisa<\/p>/;
    const signup = () => read(new URL(poster.signup_url).pathname);
    const beside = await drawings();
    expect(await read(page)).toMatch(named);
    expect(await signup()).toMatch(named);
    expect((await change({ logo_contains_name: true }, own)).body.logo_contains_name).toBe(true);
    expect((await drawings()).equals(beside)).toBe(false);
    for (const text of [await read(page), await signup()]) {
      expect(text).not.toMatch(named);
      expect(text).toContain('alt="Café Luisa"');
    }
  });
});
