import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { readPass } from '../support/emulators/apple/pass-reader.mjs';
import { PASS_TYPE } from '../support/emulators/apple/certificates.mjs';
import type { Phone } from '../support/emulators/apple/phone.mjs';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const SLOW = 300_000;
const IPHONE = { 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)' };
const GONE = '00000000-0000-4000-8000-000000000000';

let world: AppleWorld;
let service: Service;
let dispatcher: Program;
let store: Client;

beforeAll(async () => {
  world = await appleWorld();
  service = await startService(world.settings);
  dispatcher = startProgram(
    'dist/apps/dispatcher/main.js',
    createTestEnvironment(service.database.url, { ...service.environment, LOG_LEVEL: 'fatal' }),
  );
  store = await service.newStore();
}, SLOW);

afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await service.stop();
  await world.apns.stop();
});

type Owned = Awaited<ReturnType<typeof enrol>> & { phone: Phone; serial: string };

/** Somebody with the card on their phone. */
async function owner(options: Parameters<typeof enrol>[1] = {}): Promise<Owned> {
  const story = await enrol(store, options);
  const phone = world.phone(service.baseUrl);
  const serial = await phone.add(story.customerCard.apple_wallet_url);
  return { ...story, phone, serial };
}

/** Another customer who holds the same card. */
async function ownerOf(card: CardJson): Promise<Owned> {
  const customer = { first_name: 'Ben', email: 'ben@example.com' };
  const story = await enrol(store, { on: card, customer });
  const phone = world.phone(service.baseUrl);
  return { ...story, phone, serial: await phone.add(story.customerCard.apple_wallet_url) };
}

/** Until the phone shows it, and nothing is left to be sent. */
async function untilShown({ phone, serial }: Owned, stamps: string): Promise<void> {
  const readPassFields = () =>
    phone.shows(serial).pass.storeCard.headerFields.find(({ key }) => key === 'stamps')?.value;
  await eventually(readPassFields, (value) => value === stamps);
  await untilQuiet();
}

async function untilQuiet(): Promise<void> {
  const left = async () => {
    const { rows } = await service.database.query<{ left: number }>(
      'select (select count(*) from pass_updates) + (select count(*) from pass_refreshes) as left',
    );
    return Number(rows[0]?.left);
  };
  await eventually(left, (count) => count === 0);
}

/** As a phone does, but with whatever headers a test wants. */
function call(method: string, path: string, headers: Record<string, string> = {}, body?: string) {
  return fetch(`${service.baseUrl}/wallet/apple/v1/${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body }),
  });
}

function authorized({ phone, serial }: Owned): Record<string, string> {
  return { authorization: `ApplePass ${phone.shows(serial).pass.authenticationToken}` };
}

const registration = (device: string, serial: string, type = PASS_TYPE) =>
  `devices/${device}/registrations/${type}/${serial}`;
const pushToken = (letter: string) => JSON.stringify({ pushToken: letter.repeat(64) });

describe('the link for Apple Wallet', () => {
  it("APPLE-01 On a device of Apple's `GET /passes/{uuid}/apple` is a `.pkpass` signed with the operator's certificate, with icon, logo and strip in three sizes", async () => {
    const { customerCard } = await enrol(store, { card: { header_text: 'Hello' } });
    const path = new URL(customerCard.apple_wallet_url).pathname;
    const response = await fetch(service.baseUrl + path, { headers: IPHONE });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/vnd.apple.pkpass');
    expect(response.headers.get('content-disposition')).toMatch(/^attachment/);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const bytes = Buffer.from(await response.arrayBuffer());
    const { pass, files } = readPass(bytes, world.certificates.root);
    expect(pass).toMatchObject({
      serialNumber: customerCard.uuid,
      webServiceURL: 'https://cards.example/wallet/apple',
      barcodes: [{ message: customerCard.code }],
    });
    for (const name of ['icon', 'logo', 'strip']) {
      for (const scale of ['', '@2x', '@3x']) expect(files.has(`${name}${scale}.png`)).toBe(true);
    }
  });

  it("CONV-62 Passes and pages show the day that an expiry has in the store's time zone, wherever the phone is", async () => {
    for (const [timeZone, expires_at, end, words] of [
      ['America/Los_Angeles', '2099-12-31', '2099-12-31T23:59:59-08:00', 'December 31, 2099'],
      ['Pacific/Kiritimati', '9999-12-31', '9999-12-31T23:59:59+14:00', 'December 31, 9999'],
      ['Europe/Berlin', '9999-12-30', '9999-12-30T23:59:59+01:00', 'December 30, 9999'],
      ['America/St_Johns', '2099-03-08', '2099-03-08T23:59:59-02:30', 'March 8, 2099'],
    ] as const) {
      const at = await service.newStore({ timeZone });
      const { customerCard } = await enrol(at, { card: { expires_at } });
      const phone = world.phone(service.baseUrl);
      const { pass } = phone.shows(await phone.add(customerCard.apple_wallet_url));
      expect(pass.expirationDate).toBe(end);
      expect(pass.storeCard.backFields).toContainEqual(
        expect.objectContaining({ key: 'expires', value: end, ignoresTimeZone: true }),
      );
      const page = await fetch(`${service.baseUrl}/passes/${customerCard.uuid}`);
      expect(await page.text()).toContain(`Valid until ${words}`);
    }
  });

  it('APPLE-02 Without a certificate `apple_wallet_url` redirects to the web card, `/passes/{uuid}`', async () => {
    const without = await startService({ PUBLIC_URL: 'https://cards.example' });
    try {
      const { customerCard } = await enrol(await without.newStore());
      const path = new URL(customerCard.apple_wallet_url).pathname;
      const response = await fetch(without.baseUrl + path, {
        redirect: 'manual',
        headers: IPHONE,
      });
      expect(response.status).toBe(302);
      expect(response.headers.get('location')).toBe(
        `https://cards.example/passes/${customerCard.uuid}`,
      );
    } finally {
      await without.stop();
    }
  });

  it("APPLE-03 On a device that is not Apple's, and for a card that does not exist, `apple_wallet_url` redirects to the web card as well", async () => {
    const { customerCard } = await enrol(store);
    const android = { 'user-agent': 'Mozilla/5.0 (Linux; Android 15)' };
    for (const [uuid, headers] of [
      [customerCard.uuid, android],
      [GONE, IPHONE],
    ] as const) {
      const path = `${service.baseUrl}/passes/${uuid}/apple`;
      const response = await fetch(path, { redirect: 'manual', headers });
      expect(response.status).toBe(302);
      expect(response.headers.get('location')).toBe(`https://cards.example/passes/${uuid}`);
    }
  });
});

describe('the web service of phones', () => {
  it('APPLE-04 A device that registers for a pass gets 201, and from then on 200 with its newest push token kept', async () => {
    const mine = await owner();
    const sendRequest = (letter: string) =>
      call('POST', registration('d1', mine.serial), authorized(mine), pushToken(letter));
    expect((await sendRequest('a')).status).toBe(201);
    expect((await sendRequest('b')).status).toBe(200);
    const { rows } = await service.database.query(
      'select push_token from apple_devices where push_token = any ($1)',
      [['a'.repeat(64), 'b'.repeat(64)]],
    );
    expect(rows).toEqual([{ push_token: 'b'.repeat(64) }]);
    const wrong = await call('POST', registration('d1', mine.serial), authorized(mine), '{}');
    expect(wrong.status).toBe(422);
  });

  it('APPLE-05 Registering, fetching and removing a pass are 401 without the token of that pass', async () => {
    const mine = await owner();
    const otherOwner = await owner();
    const right = authorized(mine);
    const wrong: [string, string, Record<string, string>][] = [
      [PASS_TYPE, mine.serial, {}],
      [PASS_TYPE, mine.serial, authorized(otherOwner)],
      [PASS_TYPE, mine.serial, { authorization: right['authorization']?.replace('ApplePass', 'Bearer') ?? '' }], // prettier-ignore
      [PASS_TYPE, mine.serial, { authorization: `${right['authorization']}x` }],
      [PASS_TYPE, GONE, right],
      ['pass.other', mine.serial, right],
    ];
    for (const [type, serial, headers] of wrong) {
      const path = registration('d2', serial, type);
      expect((await call('POST', path, headers, pushToken('a'))).status).toBe(401);
      expect((await call('DELETE', path, headers)).status).toBe(401);
      expect((await call('GET', `passes/${type}/${serial}`, headers)).status).toBe(401);
    }
  });

  it("APPLE-06 A device's list names the passes that have changed since a tag, or all of them without one", async () => {
    const mine = await owner({ card: { stamps_required: 10 } });
    const { library } = mine.phone;
    const list = (since = '') =>
      call('GET', `devices/${library}/registrations/${PASS_TYPE}${since}`);
    const all = await list();
    expect(all.status).toBe(200);
    expect(await all.json()).toEqual({
      serialNumbers: [mine.serial],
      lastUpdated: expect.stringMatching(/^\d+$/),
    });
    await store.stamp(mine.path);
    await untilShown(mine, '1/10');
    const changed = (await (await list()).json()) as { lastUpdated: string };
    expect((await list(`?passesUpdatedSince=${changed.lastUpdated}`)).status).toBe(204);
    const before = Number(changed.lastUpdated) - 1;
    expect(await (await list(`?passesUpdatedSince=${before}`)).json()).toEqual({
      serialNumbers: [mine.serial],
      lastUpdated: changed.lastUpdated,
    });
    expect((await list('?passesUpdatedSince=nonsense')).status).toBe(200);
    const unknown = await call('GET', `devices/unknown/registrations/${PASS_TYPE}`);
    expect(unknown.status).toBe(204);
  });

  it('APPLE-07 A fetched pass has `Last-Modified`; it is 304 only when it is certain that the pass is as it was', async () => {
    const mine = await owner();
    const path = `passes/${PASS_TYPE}/${mine.serial}`;
    const sendRequest = (since?: string) =>
      call('GET', path, { ...authorized(mine), ...(since && { 'if-modified-since': since }) });
    const first = await sendRequest();
    expect(first.status).toBe(200);
    const modified = first.headers.get('last-modified') ?? '';
    // It has changed within the last minute: within the same second it may change again.
    expect((await sendRequest(modified)).status).toBe(200);
    await service.database.query(
      `update passes set changed_at = now() - interval '1 hour' where customer_card_id = $1`,
      [mine.customerCard.id],
    );
    const settled = (await sendRequest()).headers.get('last-modified') ?? '';
    const second = await sendRequest(settled);
    expect([second.status, await second.text()]).toEqual([304, '']);
    expect((await sendRequest(new Date(Date.parse(settled) - 1000).toUTCString())).status).toBe(
      200,
    );
    expect((await sendRequest('nonsense')).status).toBe(200);
  });

  it('APPLE-08 `pass_installed` is set by a registration and cleared when no device has the pass any more', async () => {
    const mine = await owner();
    const second = world.phone(service.baseUrl);
    await second.add(mine.customerCard.apple_wallet_url);
    const installed = async () =>
      (await store.get<{ pass_installed: boolean }>(mine.path)).body.pass_installed;
    expect(await installed()).toBe(true);
    await mine.phone.remove(mine.serial);
    expect(await installed()).toBe(true);
    await second.remove(mine.serial);
    expect(await installed()).toBe(false);
    await second.add(mine.customerCard.apple_wallet_url);
    expect(await installed()).toBe(true);
  });

  it('APPLE-09 Complaints that name a device or a pass that has registered are logged: at most 16 KB at once, and thirty a minute for an IP address', async () => {
    const complain = (logs: string[]) => call('POST', 'log', {}, JSON.stringify({ logs }));
    expect((await complain(['[2026-11-21] Web service error for pass.example'])).status).toBe(200);
    expect((await complain(['x'.repeat(17 * 1024)])).status).toBe(413);
    expect((await call('POST', 'log', { 'content-type': 'text/plain' }, '')).status).toBe(200);
    expect((await call('POST', 'log', { 'content-encoding': 'gzip' }, '{}')).status).toBe(415);
    const unsigned = await call(
      'POST',
      registration('d', '1'),
      { 'content-type': 'image/png' },
      '',
    );
    expect(unsigned.status).toBe(401);
    const statuses = new Set<number>();
    for (let i = 0; i < 30; i += 1) statuses.add((await complain([])).status);
    expect([...statuses]).toEqual([200, 429]);
  });
});

describe('a pass on a phone', () => {
  it('APPLE-10 A stamp, a reward within reach and a redemption each show one message on the phone', async () => {
    const mine = await owner({ card: { stamps_required: 3 }, rewards: [2] });
    await store.stamp(mine.path);
    await untilShown(mine, '1/3');
    expect(mine.phone.messages).toEqual(['1 more stamp to your reward: Reward at 2.']);
    await store.stamp(mine.path);
    await untilShown(mine, '2/3');
    await store.post(`${mine.path}/redeem`, { reward_id: mine.rewards[0]?.id });
    await untilShown(mine, '0/3');
    expect(mine.phone.messages).toEqual([
      '1 more stamp to your reward: Reward at 2.',
      'Your reward is ready: Reward at 2. You have 2 stamps.',
      'Reward redeemed: Reward at 2. Enjoy! You have 0 stamps.',
    ]);
    expect(mine.phone.complaints).toEqual([]);
  });

  it('APPLE-11 With `skip_notifications` the pass is updated and no message is shown; the next stamp is told as ever', async () => {
    const mine = await owner({ card: { stamps_required: 9 } });
    await store.stamp(mine.path, { skip_notifications: true });
    await untilShown(mine, '1/9');
    expect(mine.phone.messages).toEqual([]);
    await store.stamp(mine.path);
    await untilShown(mine, '2/9');
    expect(mine.phone.messages).toEqual(['7 more stamps to a full card.']);
  });

  it('APPLE-12 Changes of the card, its rewards and the store update passes without a message', async () => {
    const mine = await owner({ card: { stamps_required: 9 }, rewards: [4] });
    await store.stamp(mine.path);
    await untilShown(mine, '1/9');
    const { card, rewards, phone, serial } = mine;
    await store.send('PATCH', `${store.store}/cards/${card.id}`, {
      card: { stamps_required: 12, header_text: 'New' },
    });
    await untilShown(mine, '1/12');
    await store.send('PATCH', `${store.store}/rewards/${rewards[0]?.id}`, {
      reward: { name: 'Other' },
    });
    await eventually(
      () => JSON.stringify(phone.shows(serial).pass.storeCard.backFields),
      (fields) => fields.includes('Other'),
    );
    await untilQuiet();
    expect(phone.messages).toEqual(['3 more stamps to your reward: Reward at 4.']);
  });

  it('APPLE-13 A pass is void once its card has expired or was merged into another one, or its customer was erased', async () => {
    const isVoid = ({ phone, serial }: Owned) => phone.shows(serial).pass.voided === true;
    const expired = await owner();
    const expire = (expires_at: string | null) =>
      store.send('PATCH', `${store.store}/cards/${expired.card.id}`, { card: { expires_at } });
    expect((await expire('2020-01-01T00:00:00Z')).status).toBe(200);
    await eventually(
      () => isVoid(expired),
      (value) => value,
    );
    expect((await expire('2199-01-01T00:00:00Z')).status).toBe(200);
    await eventually(
      () => isVoid(expired),
      (value) => !value,
    );
    const otherOwner = await owner();
    const merged = await ownerOf(otherOwner.card);
    const { status } = await store.post(
      `${store.store}/customers/${otherOwner.customer.id}/merge`,
      {
        from_customer_id: merged.customer.id,
      },
    );
    expect(status).toBe(200);
    await eventually(
      () => isVoid(merged),
      (value) => value,
    );
    expect(isVoid(otherOwner)).toBe(false);
    const erased = await owner({ card: { show_member_field: true } });
    expect(JSON.stringify(erased.phone.shows(erased.serial).pass)).toContain('Anna');
    await store.post(`${store.store}/customers/${erased.customer.id}/erase`, {
      reason: 'requested',
    });
    await eventually(
      () => isVoid(erased),
      (value) => value,
    );
    await untilQuiet();
    expect(JSON.stringify(erased.phone.shows(erased.serial).pass)).not.toContain('Anna');
    for (const { phone } of [expired, merged, erased]) expect(phone.messages).toEqual([]);
  });

  it('APPLE-14 Archiving a card changes nothing about its passes: they stay valid, are kept up to date, and can be added', async () => {
    const mine = await owner({ card: { stamps_required: 9 } });
    const before = mine.phone.shows(mine.serial).pass;
    const { status } = await store.post(`${store.store}/cards/${mine.card.id}/archive`);
    expect(status).toBe(200);
    const second = world.phone(service.baseUrl);
    await second.add(mine.customerCard.apple_wallet_url);
    expect(second.shows(mine.serial).pass).toEqual(before);
    await store.stamp(mine.path);
    await untilShown(mine, '1/9');
    const { pass } = mine.phone.shows(mine.serial);
    expect(pass.voided).toBeUndefined();
    expect(JSON.stringify(pass)).not.toContain('no longer valid');
    expect(mine.phone.messages).toEqual(['8 more stamps to a full card.']);
    await store.post(`${store.store}/cards/${mine.card.id}/unarchive`);
    await untilQuiet();
    expect(mine.phone.messages).toEqual(['8 more stamps to a full card.']);
  });

  it('APPLE-15 A tag or date that was never given out counts as none', async () => {
    const mine = await owner({ card: { stamps_required: 9 } });
    const { id } = mine.customerCard;
    const { library } = mine.phone;
    const list = (since: string) =>
      call('GET', `devices/${library}/registrations/${PASS_TYPE}?passesUpdatedSince=${since}`);
    const pass = (since: string) =>
      call('GET', `passes/${PASS_TYPE}/${mine.serial}`, {
        ...authorized(mine),
        'if-modified-since': since,
      });
    await store.stamp(mine.path);
    await untilShown(mine, '1/9');
    const { rows } = await service.database.query<{ tag: string }>(
      'select tag from passes where customer_card_id = $1',
      [id],
    );
    const newest = Number(rows[0]?.tag);
    expect((await list(String(newest))).status).toBe(204);
    for (const never of [newest + 1, newest + 1000, '999999999999999', '-1', '1e3', '']) {
      const listed = await list(String(never));
      expect([never, listed.status]).toEqual([never, 200]);
      expect(await listed.json()).toMatchObject({ lastUpdated: String(newest) });
    }
    const ahead = new Date(Date.now() + 60_000).toUTCString();
    // As in a backup of an hour ago.
    await service.database.query(`select setval('pass_tags', 1, false)`);
    await service.database.query(
      `update passes set tag = 0, balance_tag = 0, notification_tag = 0, notification = null,
         changed_at = now() - interval '1 hour'`,
    );
    const lastModified = mine.phone.shows(mine.serial).modified ?? '';
    for (const date of [lastModified, ahead]) expect((await pass(date)).status).toBe(200);
    const settled = (await pass(ahead)).headers.get('last-modified') ?? '';
    expect((await pass(settled)).status).toBe(304);
    // It asks with the tag of before, which lies ahead now: without a push, and after one.
    const listed = await list(String(newest));
    expect([listed.status, await listed.json()]).toEqual([
      200,
      { serialNumbers: [mine.serial], lastUpdated: '0' },
    ]);
    await store.stamp(mine.path);
    await untilShown(mine, '2/9');
    await store.stamp(mine.path);
    await untilShown(mine, '3/9');
    expect(mine.phone.messages).toEqual([8, 7, 6].map((n) => `${n} more stamps to a full card.`));
    expect(mine.phone.complaints).toEqual([]);
  });

  it('APPLE-16 The names of store and card are at the top of the front of a pass', async () => {
    const fields = [
      { label: 'Open', value: 'Mo–Sa 8–18' },
      { label: 'Phone', value: 'Call us on +49 721 1234567 before eight in the morning' },
    ];
    const { phone, serial } = await owner({
      card: { name: 'Coffee card', auxiliary_fields: fields, header_text: 'h'.repeat(99) },
    });
    const { logoText, storeCard } = phone.shows(serial).pass;
    expect(logoText).toBeTruthy();
    expect(storeCard.headerFields).toEqual([
      expect.objectContaining({ key: 'stamps', label: 'Coffee card' }),
    ]);
    const onBack = storeCard.backFields.map(({ key }) => key);
    expect(onBack).toEqual(expect.arrayContaining(['aux_2', 'header']));
    expect(storeCard.auxiliaryFields.map(({ key }) => key)).toEqual(['aux_1']);
  });

  it('APPLE-17 The back of a pass has a link to the web card, how to reach the store, its terms, and the rewards, of which it shows twenty at most', async () => {
    const account = { website: 'https://cafe.example/', terms_text: 'One stamp a day.' };
    await store.send('PATCH', store.store, { account });
    const rewards = Array.from({ length: 22 }, (_, i) => i + 1);
    const { phone, serial, customerCard } = await owner({ rewards });
    const { backFields } = phone.shows(serial).pass.storeCard;
    const values = new Map(backFields.map(({ key, value }) => [key, value]));
    expect(values.get('page')).toBe(`https://cards.example/passes/${customerCard.uuid}`);
    expect(values.get('website')).toBe('https://cafe.example/');
    expect(values.get('terms')).toBe('One stamp a day.');
    expect(values.get('rewards')).toMatch(/^Reward at 1: [^]+And 2 more rewards/);
    await store.send('PATCH', store.store, { account: { website: null, terms_text: null } });
  });

  it("APPLE-18 The barcode has the card's `barcode_format`", async () => {
    for (const [barcode_format, formats] of [
      ['aztec', ['PKBarcodeFormatAztec']],
      ['pdf417', ['PKBarcodeFormatPDF417']],
      ['code128', ['PKBarcodeFormatCode128', 'PKBarcodeFormatQR']],
    ] as const) {
      const { phone, serial, customerCard } = await owner({ card: { barcode_format } });
      const { barcodes } = phone.shows(serial).pass;
      expect(barcodes.map(({ format, message }) => [format, message])).toEqual(
        formats.map((format) => [format, customerCard.code]),
      );
    }
  });

  it('APPLE-19 With a `stamp_message`, `reward_message` or `redemption_message` that text is what the phone shows', async () => {
    const mine = await owner({
      card: {
        stamps_required: 4,
        stamp_message: '{missing} more to your free coffee',
        reward_message: 'Come in, {reward} is on us!',
        redemption_message: 'Enjoy',
      },
      rewards: [2],
    });
    await store.stamp(mine.path);
    await untilShown(mine, '1/4');
    await store.send('PATCH', `${store.store}/cards/${mine.card.id}`, {
      card: { stamp_message: null },
    });
    await store.stamp(mine.path);
    await untilShown(mine, '2/4');
    await store.post(`${mine.path}/redeem`, { reward_id: mine.rewards[0]?.id });
    await untilShown(mine, '0/4');
    expect(mine.phone.messages).toEqual([
      '1 more to your free coffee',
      'Come in, Reward at 2 is on us! You have 2 stamps.',
      'Enjoy\nYou have 0 stamps.',
    ]);
  });
});
