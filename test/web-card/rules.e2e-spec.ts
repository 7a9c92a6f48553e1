import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { PassLinks } from '#web/web-card/pass-links.service.js';
import { useService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService();
const store = service.useStore();

const IPHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15';
const ANDROID = 'Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 Chrome/150.0';
const DESKTOP = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/150.0';

async function get(path: string, headers: Record<string, string> = {}) {
  const { baseUrl } = service.running;
  const response = await fetch(baseUrl + path, { headers, redirect: 'manual' });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Reads the visible text of a page. */
function words(page: string): string {
  return page
    .replace(/<(style|head)[^]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

describe('the page', () => {
  it("WEBCARD-01 The page of a card shows it with its stamps, its rewards with their progress, what the card's fields say, and its `code` as a QR code", async () => {
    const { page, stamp, customerCard } = await enrol(store, {
      customer: { first_name: 'Grace', last_name: 'Hopper' },
      rewards: [
        ['Cookie', 3],
        ['Free coffee', 10],
      ],
      card: { name: 'Coffee club', auxiliary_fields: [{ label: 'Branch', value: 'Harbour' }] },
    });
    await stamp(4);
    const { status, headers, text } = await get(page);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const read = words(text);
    for (const visibleText of [
      'Coffee club',
      'Corner Café',
      '4 / 10',
      'Grace Hopper',
      'Branch Harbour',
      'Cookie 3 stamps Ready to redeem About Cookie',
      'Free coffee 10 stamps 6 stamps to go About Free coffee',
      customerCard.code,
    ]) {
      expect(read).toContain(visibleText);
    }
    expect(text).toContain(`aria-label="QR code of the card ${customerCard.code}"`);
  });

  it('WEBCARD-31 An unlocked reward is ready to redeem for what it takes on the card (REWARD-27), on the page and on every pass, and a pass says how many stamps that is', async () => {
    const { page, stamp, card } = await enrol(store, {
      rewards: [
        ['Cookie', 3],
        ['Free coffee', 10],
      ],
    });
    await stamp(4);
    const { body: rewards } = await store.get<{ id: number }[]>(
      `${store.store}/rewards?card_id=${card.id}`,
    );
    await store.patch(`${store.store}/rewards/${rewards[0]?.id}`, {
      reward: { stamps_required: 9 },
    });
    const read = words((await get(page)).text);
    expect(read).toContain('Free coffee 10 stamps 6 stamps to go');
    expect(read).toContain('Cookie uses 3 stamps');
    expect(read).toContain('Cookie 3 stamps Ready to redeem');
  });

  it("WEBCARD-02 The web card's content security policy allows its own script, one style by its hash, and nothing else", async () => {
    const { page } = await enrol(store);
    const { headers, text } = await get(page);
    const [, style = ''] = /<style>([^]*)<\/style>/.exec(text) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; script-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
    );
    expect([headers.get('cache-control'), headers.get('referrer-policy')]).toEqual([
      'no-store, no-transform',
      'no-referrer',
    ]);
    expect(headers.get('x-robots-tag')).toContain('noindex');
    // No inline script or style, and nothing from anywhere else.
    expect(text).not.toMatch(
      /<script(?![^>]*\ssrc="\/)|\son\w+=|\sstyle=|(src|href)="(?!\/|data:)/,
    );
  });

  it('WEBCARD-03 The web card speaks the language of its store (`locale`), whatever the browser asks for, or English where there are no texts in that', async () => {
    const german = await service.newStore();
    const { status } = await german.patch(german.store, { account: { locale: 'de-AT' } });
    expect(status).toBe(200);
    const { page, stamp } = await enrol(german, {
      rewards: [['Kuchen', 5]],
      card: { expires_at: '2199-05-31T10:00:00Z' },
    });
    await stamp(4);
    const { text } = await get(page, { 'accept-language': 'fr' });
    expect(text).toContain('<html lang="de-AT">');
    expect(words(text)).toContain('Kuchen 5 Stempel Noch 1 Stempel');
    expect(words(text)).toContain('Gültig bis 31. Mai 2199');
  });

  it('WEBCARD-04 Names and texts on the web card are shown as they were typed, never as markup', async () => {
    const typed = `<script>alert(1)</script>"'&`;
    const { page } = await enrol(store, {
      card: { name: typed, header_text: typed, auxiliary_fields: [{ label: typed, value: typed }] },
      customer: { first_name: typed },
      rewards: [[typed, 5]],
    });
    const { text } = await get(page);
    expect(text).not.toContain('<script>');
    expect(text.match(/&lt;script&gt;alert\(1\)&lt;\/script&gt;&quot;&#39;&amp;/g)?.length).toBe(
      11,
    );
  });

  it('WEBCARD-05 The web card has the colours of the card', async () => {
    const readable = await enrol(store, {
      card: { card_color: '#004D40', text_color: '#FFE082' },
    });
    expect((await get(readable.page)).text).toContain('--card:#004D40;--on-card:#FFE082');
    const faint = await enrol(store, {
      card: { card_color: '#EEEEEE', text_color: '#FFFFFF' },
    });
    expect((await get(faint.page)).text).toContain('--card:#EEEEEE;--on-card:#000000');
  });

  it('WEBCARD-06 An expired card is shown in grey, and the page says why', async () => {
    const expired = await enrol(store, {
      card: { expires_at: '2199-01-01T00:00:00Z' },
      rewards: [
        ['Cookie', 3],
        ['Free coffee', 10],
      ],
    });
    await expired.stamp(4);
    await store.patch(`${store.store}/cards/${expired.card.id}`, {
      card: { expires_at: '2025-01-31T10:00:00Z' },
    });
    const page = await get(expired.page);
    expect(page.status).toBe(200);
    const read = words(page.text);
    expect(read).toContain('This card expired on January 31, 2025.');
    expect(read).toContain('Cookie 3 stamps About Cookie');
    for (const gone of ['Show this code', 'Next reward', 'to go', 'Ready to redeem', 'Notify me']) {
      expect(read).not.toContain(gone);
    }
    expect(page.text).toContain('class="page ended"');
    expect(page.text).not.toContain('<progress');
  });

  it('WEBCARD-29 An archived card is shown like any other', async () => {
    for (const locale of ['en', 'de', 'es', 'fr']) {
      const own = await service.newStore();
      await own.patch(own.store, { account: { locale } });
      const { page, card, stamp } = await enrol(own, { rewards: [['Cookie', 3]] });
      await stamp(3);
      const before = await get(page);
      expect((await own.post(`${own.store}/cards/${card.id}/archive`)).status).toBe(200);
      const after = await get(page);
      const timeless = (text: string) =>
        text.replace(/<p class="panel notice[^>]* id="offline"[^]*?<\/p>/, '');
      expect([after.status, timeless(after.text)]).toEqual([200, timeless(before.text)]);
      expect(after.text).toContain('id="notify"');
      await stamp(1);
      expect(words((await get(page)).text)).toContain('4 / 10');
    }
  });

  it('WEBCARD-07 A link that leads to no card is a 404 with a page that says so, in a language that the browser asks for', async () => {
    const { page, customer } = await enrol(store, {
      customer: { first_name: 'Wilhelmina' },
    });
    expect((await get(page)).text).toContain('Wilhelmina');
    expect((await store.post(`${store.store}/customers/${customer.id}/erase`)).status).toBe(204);
    const erased = await get(page, { 'accept-language': 'es' });
    expect([erased.status, erased.headers.get('content-type')]).toEqual([
      404,
      'text/html; charset=utf-8',
    ]);
    expect(words(erased.text)).toContain('Esta tarjeta no existe');
    for (const link of [crypto.randomUUID(), 'x', '1', '%00', 'a'.repeat(3000)]) {
      const unknown = await get(`/passes/${link}`, { 'accept-language': 'es' });
      expect([unknown.status, unknown.text]).toEqual([404, erased.text]);
    }
  });

  it('WEBCARD-08 The link of a card that was merged leads to the card that goes on for it (302)', async () => {
    const currentCard = await enrol(store);
    const { body: otherCustomer } = await store.post<{ id: number }>(`${store.store}/customers`, {
      customer: { first_name: 'Ada', email: 'same.person@mail.example' },
    });
    const cards = `${store.store}/customers/${otherCustomer.id}/customer_cards`;
    const { body: merged } = await store.post<{ uuid: string }>(cards, {
      card_id: currentCard.card.id,
    });
    const { status } = await store.post(
      `${store.store}/customers/${currentCard.customer.id}/merge`,
      {
        from_customer_id: otherCustomer.id,
      },
    );
    expect(status).toBe(200);
    const { status: moved, headers } = await get(`/passes/${merged.uuid}`);
    expect([moved, headers.get('location')]).toEqual([
      302,
      `https://cards.example${currentCard.page}`,
    ]);
  });

  it('WEBCARD-09 The web card takes less than 30 KB', async () => {
    const rewards = Array.from({ length: 50 }, (_, i): [string, number] => [`Reward ${i}`, i + 1]);
    const { page } = await enrol(store, { rewards: rewards.slice(0, 20) });
    const { text } = await get(page);
    expect(Buffer.byteLength(text)).toBeLessThan(30_000);
  });

  it('WEBCARD-10 The web card can be put on a home screen: `/manifest.webmanifest` below it has its name, icons and colours, and starts at the card', async () => {
    const { page, customerCard } = await enrol(store, { card: { name: 'Tea club' } });
    const { text } = await get(page);
    expect(text).toContain(`<link rel="manifest" href="${page}/manifest.webmanifest" />`);
    const { headers, text: manifest } = await get(`${page}/manifest.webmanifest`);
    expect(headers.get('content-type')).toMatch(/^application\/manifest\+json/);
    expect(JSON.parse(manifest)).toMatchObject({
      id: page,
      name: 'Tea club · Corner Café',
      short_name: 'Tea club',
      start_url: page,
      scope: page,
      display: 'standalone',
      icons: [{ src: `${page}/icon.svg` }, { purpose: 'maskable' }],
    });
    // For iPhones, which take no SVG.
    const [, touchIcon = ''] =
      /<link rel="apple-touch-icon" href="(\/img\/logo\/[^"]+)"/.exec(text) ?? [];
    expect((await get(touchIcon)).headers.get('content-type')).toBe('image/png');
    const icon = await get(`/passes/${customerCard.uuid}/icon.svg`);
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/svg+xml']);
    expect((await get(`/passes/${crypto.randomUUID()}/manifest.webmanifest`)).status).toBe(404);
  });

  it("WEBCARD-11 The web card's service worker, `/worker.js` below it, is there for this one link, and shows the card's last state without a connection", async () => {
    const { page } = await enrol(store);
    const { text } = await get(page);
    const worker = await get(`${page}/worker.js`);
    expect(worker.headers.get('content-type')).toMatch(/^text\/javascript/);
    expect([
      worker.headers.get('service-worker-allowed'),
      worker.headers.get('cache-control'),
    ]).toEqual([page, 'no-cache']);
    expect(worker.headers.get('content-security-policy')).toBe(
      "default-src 'none'; connect-src 'self'",
    );
    const [, path = ''] = /<script src="([^"]+)" defer>/.exec(text) ?? [];
    const script = await get(path);
    expect([script.status, script.headers.get('cache-control')]).toEqual([
      200,
      'public, max-age=31536000, immutable',
    ]);
  });
});

describe('the wallet links', () => {
  it('WEBCARD-12 Without credentials of a vendor the wallet links lead to the page (302), which then names no wallet', async () => {
    const { page, customerCard } = await enrol(store);
    for (const url of [customerCard.apple_wallet_url, customerCard.google_wallet_url]) {
      const { status, headers } = await get(new URL(url).pathname, { 'user-agent': IPHONE });
      expect([status, headers.get('location')]).toEqual([302, `https://cards.example${page}`]);
    }
    const { text } = await get(page, { 'user-agent': IPHONE });
    expect(text).not.toMatch(/(Apple|Google) Wallet/);
  });

  it("WEBCARD-13 With a vendor's credentials `/apple` gives Apple devices the signed pass, and `/google` leads others to Google's page", async () => {
    const { page } = await enrol(store);
    const links = service.running.app.get(PassLinks, { strict: false });
    const changedAt = new Date('2026-11-01T10:00:00Z');
    const vendors = {
      appleEnabled: true,
      googleEnabled: true,
      createPackage: async ({ code }: { code: string }) => ({
        bytes: Buffer.from(code),
        changedAt,
      }),
      createSaveUrl: async () => 'https://pay.google.com/gp/v/save/jwt',
    };
    for (const [name, value] of Object.entries(vendors)) {
      Object.defineProperty(links, name, { value, configurable: true });
    }
    try {
      const apple = await get(`${page}/apple`, { 'user-agent': IPHONE });
      expect([apple.status, apple.headers.get('content-type')]).toEqual([
        200,
        'application/vnd.apple.pkpass',
      ]);
      expect(apple.headers.get('last-modified')).toBe(changedAt.toUTCString());
      const google = await get(`${page}/google`, { 'user-agent': ANDROID });
      expect(google.headers.get('location')).toBe('https://pay.google.com/gp/v/save/jwt');
      const lead = async (path: string, agent: string) =>
        (await get(path, { 'user-agent': agent })).headers.get('location');
      const card = `https://cards.example${page}`;
      expect(await lead(`${page}/apple`, ANDROID)).toBe(card);
      expect(await lead(`${page}/apple`, DESKTOP)).toBe(card);
      expect(await lead(`${page}/google`, IPHONE)).toBe(card);
      const offers = async (agent: string) =>
        [...(await get(page, { 'user-agent': agent })).text.matchAll(/Add to (\w+) Wallet/g)].map(
          ([, vendor]) => vendor,
        );
      expect(await offers(IPHONE)).toEqual(['Apple']);
      expect(await offers(ANDROID)).toEqual(['Google']);
      expect(await offers(DESKTOP)).toEqual(['Apple', 'Google']);
    } finally {
      for (const name of Object.keys(vendors)) Reflect.deleteProperty(links, name);
    }
  });

  it('WEBCARD-14 The wallet links of a bad link lead to its page, which says what is wrong', async () => {
    const { status, headers } = await get('/passes/nonsense/apple', { 'user-agent': IPHONE });
    expect([status, headers.get('location')]).toEqual([
      302,
      'https://cards.example/passes/nonsense',
    ]);
  });
});
