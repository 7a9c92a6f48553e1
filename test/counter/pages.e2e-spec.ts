import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import type { Role } from '#identity/roles.js';
import { SetPassword } from '#identity/user.commands.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import { LocationsService } from '#loyalty/locations/locations.service.js';
import { CounterLocations } from '#web/counter/counter-locations.service.js';
import { Browser } from '../support/browser/browser.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests who may do what at the counter; test/counter/browser.full-spec.ts tests it as people use it. */

const PASSWORD = 'correct horse';
const PIN = '407185';

let service: LocalService;
let store: Client & { email: string };

beforeAll(async () => {
  service = await startService({ TRUST_PROXY_HOPS: '1' });
  store = await service.newStore();
});
afterAll(() => service?.stop());

async function member(role: Role, name: string): Promise<{ email: string; userId: number }> {
  const email = `${randomUUID()}@member.example`;
  const { userId } = await service.execute(new CreateUser(cli, email, name, PASSWORD));
  await service.execute(new AddMember(cli, store.accountId, email, role));
  return { email, userId };
}

async function signIn(email: string): Promise<Browser> {
  const browser = new Browser(service);
  await browser.signIn(email, PASSWORD);
  return browser;
}

async function setPin(email: string, pin = PIN): Promise<void> {
  const browser = await signIn(email);
  await browser.get('/app/account/pin');
  const { location } = await browser.post('/app/account/pin', { pin, current_password: PASSWORD });
  expect(location).toBe('/app/account/pin?done=set');
}

const counter = (rest = '') => `/counter/${store.accountId}${rest}`;

async function change(browser: Browser, userId: number, pin: string) {
  await browser.get(counter('/people'));
  return browser.post(counter('/people'), { user_id: String(userId), pin });
}

/** Sends operations as the script does. */
async function sendBatch(browser: Browser, operations: object[], headers: object = {}) {
  await browser.get(counter());
  return postBatch(browser, operations, headers);
}

async function postBatch(
  browser: Browser,
  operations: unknown[],
  headers: object = {},
  path = counter('/batch'),
) {
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const response = await fetch(service.baseUrl + path, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      cookie,
      accept: 'application/json',
      'content-type': 'application/json',
      origin: browser.origin,
      'x-csrf-token': browser.csrf,
      ...headers,
    },
    body: JSON.stringify({ operations }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  const { results = [] } = (isJson ? JSON.parse(text) : {}) as { results?: CounterResult[] };
  return { status: response.status, results };
}

type CounterResult = {
  status: number;
  html: string;
  name: string;
  event_id: string | null;
  is_unattended?: true;
};

describe('the counter', () => {
  it('is where staff land after signing in, and others do not', async () => {
    const staff = await member('staff', 'Mira');
    const browser = new Browser(service);
    await browser.get('/app/sign-in');
    const signedIn = await browser.post('/app/sign-in', { email: staff.email, password: PASSWORD });
    expect(signedIn.location).toBe('/counter');
    expect((await browser.get('/counter')).location).toBe(counter());
    expect((await browser.get(counter())).text).toContain('Mira');
    const owner = new Browser(service);
    await owner.get('/app/sign-in');
    const { location } = await owner.post('/app/sign-in', {
      email: store.email,
      password: PASSWORD,
    });
    expect(location).toBe(`/app/stores/${store.accountId}`);
    const led = await owner.get(`/app/stores/${store.accountId}/counter`);
    expect(led.location).toBe(counter());
  });

  it('asks a visitor to sign in, and leads back', async () => {
    const { location } = await new Browser(service).get(counter());
    expect(location).toBe(`/app/sign-in?return_to=${encodeURIComponent(counter())}`);
  });

  it('is not found by members of other stores', async () => {
    const otherStore = await service.newStore();
    const browser = await signIn(otherStore.email);
    expect((await browser.get(counter())).status).toBe(404);
    expect((await browser.post(counter('/stamp'), { code: 'K7QX2M9P' })).status).toBe(404);
  });

  it('refuses a batch without the token of the page, and one from another site', async () => {
    const browser = await signIn(store.email);
    const { customerCard } = await enrol(store);
    const operation = { operation: 'stamp', code: customerCard.code, stamps: 1, external_ref: 'x' };
    expect((await sendBatch(browser, [operation], { 'x-csrf-token': 'no' })).status).toBe(403);
    const foreign = { origin: 'https://evil.example' };
    expect((await sendBatch(browser, [operation], foreign)).status).toBe(403);
    expect((await sendBatch(browser, [])).status).toBe(200);
    expect(
      (
        await sendBatch(
          browser,
          Array.from({ length: 51 }, () => operation),
        )
      ).status,
    ).toBe(422);
    expect((await sendBatch(browser, ['stamp' as unknown as object])).status).toBe(422);
  });

  it('counts a batch as one request for every ten operations', async () => {
    const browser = await signIn(store.email);
    await browser.get(counter());
    const post = async (operationCount: number, address = '198.51.100.7') => {
      const operations = Array.from({ length: operationCount }, () => 'no operation');
      return (await postBatch(browser, operations, { 'x-forwarded-for': address })).status;
    };
    // An address may send 1,200 requests in a minute, or 240 batches of 50.
    for (let round = 0; round < 12; round++) {
      const statuses = await Promise.all(Array.from({ length: 20 }, () => post(50)));
      expect(new Set(statuses)).toEqual(new Set([422]));
    }
    expect(await post(1)).toBe(429);
    expect(await post(50, '198.51.100.8')).toBe(422);
  });

  it('stamps once for a receipt number, in the name of who is signed in, for the channel staff', async () => {
    const staff = await member('staff', 'Jonas');
    const browser = await signIn(staff.email);
    const { customerCard, path } = await enrol(store);
    const external_ref = `counter-${randomUUID()}`;
    const operation = { operation: 'stamp', code: customerCard.code, stamps: 1, external_ref };
    const first = await sendBatch(browser, [{ ...operation, asks: true }]);
    const again = await sendBatch(browser, [{ ...operation, asks: true }]);
    expect([first, again].map(({ results }) => results[0]?.status)).toEqual([200, 200]);
    const { body } = await store.get<HistoryEntryJson[]>(`${path}/events`);
    const stampings = body.filter(({ type }) => type === 'stamp.earned');
    expect(stampings).toMatchObject([
      { channel: 'staff', actor: { type: 'user', id: staff.userId, name: 'Jonas' } },
    ]);
  });

  it('stamps and redeems at the location of its store, or at the one that somebody chose in the browser', async () => {
    const shop = await service.newStore();
    const otherStore = await service.newStore();
    const create = async (owner: Client, name: string) => {
      const location = { name, address: 'Kai 2, Hamburg' };
      return (await owner.post<{ id: number }>(`${owner.store}/locations`, { location })).body.id;
    };
    const browser = await signIn(shop.email);
    const at = `/counter/${shop.accountId}`;
    const { customerCard, path, rewards } = await enrol(shop, { rewards: [1] });
    const readLast = async () => {
      const { body } = await shop.get<HistoryEntryJson[]>(`${path}/events`);
      const [last] = body.filter(({ type }) => /^(stamp.earned|reward.redeemed)$/.test(type));
      return last?.location_id;
    };
    const stamp = async () => {
      await browser.get(at);
      await browser.post(`${at}/stamp`, { code: customerCard.code, again: 'yes' });
      return readLast();
    };
    const choose = async (id: number | string) => {
      await browser.get(`${at}/location`);
      return browser.post(`${at}/location`, { location_id: String(id) });
    };
    expect(await stamp()).toBeNull();
    const first = await create(shop, 'Harbour');
    expect(await stamp()).toBe(first);
    expect((await browser.get(at)).text).not.toContain(`${at}/location`);
    const second = await create(shop, 'Old Town');
    expect(await stamp()).toBeNull();
    expect((await browser.get(at)).text).toContain('Where is this counter?');
    expect((await choose(second)).location).toBe(at);
    expect(await stamp()).toBe(second);
    expect((await browser.get(at)).text).toContain('Old Town');
    await browser.post(`${at}/redeem`, {
      customer_card_id: String(customerCard.id),
      reward_id: String(rewards[0]?.id),
    });
    expect(await readLast()).toBe(second);
    for (const id of [await create(otherStore, 'Elsewhere'), '999999999999999', 'x', 0]) {
      await choose(id);
      expect(await stamp()).toBeNull();
    }
    await choose(second);
    const third = await create(shop, 'Kiosk');
    await shop.send('DELETE', `${shop.store}/locations/${second}`);
    expect(await stamp()).toBeNull();
    await shop.send('DELETE', `${shop.store}/locations/${third}`);
    expect(await stamp()).toBe(first);
  });

  it('remembers the location for each store in one cookie, and ignores what is none', async () => {
    const email = `${randomUUID()}@member.example`;
    await service.execute(new CreateUser(cli, email, 'Zoe', PASSWORD));
    const others = [await service.newStore(), await service.newStore()];
    for (const { accountId } of others) {
      await service.execute(new AddMember(cli, accountId, email, 'staff'));
    }
    const browser = await signIn(email);
    const chosen: { owner: Client; id: number; code: string; path: string }[] = [];
    for (const owner of others) {
      for (const name of ['Harbour', 'Old Town']) {
        const location = { name, address: 'Kai 2, Hamburg' };
        await owner.post(`${owner.store}/locations`, { location });
      }
      const { body } = await owner.get<{ id: number }[]>(`${owner.store}/locations`);
      const { customerCard, path } = await enrol(owner);
      const at = `/counter/${owner.accountId}`;
      const { text } = await browser.get(`${at}/location`);
      expect(text).toMatch(/Harbour[^]*Old Town[^]*No location/);
      const id = body.at(-1)?.id ?? 0;
      await browser.post(`${at}/location`, { location_id: String(id) });
      expect((await browser.get(`${at}/location`)).text).toMatch(
        new RegExp(`value="${id}"[^>]* checked`),
      );
      chosen.push({ owner, id, code: customerCard.code, path });
    }
    const stampAt = async ({ owner, code, path }: (typeof chosen)[number]) => {
      const at = `/counter/${owner.accountId}`;
      await browser.get(at);
      await browser.post(`${at}/stamp`, { code, again: 'yes' });
      const { body } = await owner.get<HistoryEntryJson[]>(`${path}/events`);
      return body.find(({ type }) => type === 'stamp.earned')?.location_id;
    };
    for (const choice of chosen) expect(await stampAt(choice)).toBe(choice.id);
    const name = [...browser.cookies.keys()].find((key) => key.includes('counter-locations')) ?? '';
    const [choice] = chosen;
    if (!choice) throw new Error('there is a choice');
    for (const value of ['x', '1-', '-1', '..', '9'.repeat(400), `${choice.owner.accountId}-1e9`]) {
      browser.cookies.set(name, value);
      expect([value, await stampAt(choice)]).toEqual([value, null]);
    }
  });

  it('loses no stamp of a batch when its location is removed meanwhile', async () => {
    const shop = await service.newStore();
    const location = { name: 'Harbour', address: 'Kai 2, Hamburg' };
    const { body } = await shop.post<{ id: number }>(`${shop.store}/locations`, { location });
    const { customerCard, path } = await enrol(shop);
    const browser = await signIn(shop.email);
    const at = `/counter/${shop.accountId}`;
    const locations = service.app.get(CounterLocations, { strict: false });
    const current = await service.app
      .get(LocationsService, { strict: false })
      .getState(shop.accountId, body.id);
    await shop.send('DELETE', `${shop.store}/locations/${body.id}`);
    // As it was found just before it was removed.
    const find = jest.spyOn(locations, 'find').mockResolvedValue({ current, hasChoice: false });
    await browser.get(at);
    const [external_ref, code] = [`counter-${randomUUID()}`, customerCard.code];
    const operation = { operation: 'stamp', code, stamps: 1, external_ref };
    const { results } = await postBatch(browser, [operation], {}, `${at}/batch`);
    find.mockRestore();
    expect(results.map(({ status }) => status)).toEqual([200]);
    const { body: events } = await shop.get<HistoryEntryJson[]>(`${path}/events`);
    const stampings = events.filter(({ type }) => type === 'stamp.earned');
    expect(stampings).toMatchObject([{ location_id: null }]);
  });

  it('books what was done with a session only if the user was signed in with it then', async () => {
    const staff = await member('staff', 'Mira');
    const colleague = await member('staff', 'Ben');
    const browser = await signIn(staff.email);
    const readSession = async (phone: Browser) => {
      const { text } = await phone.get(counter('/state'));
      return JSON.parse(text) as { user_id: number; session_id: number };
    };
    const former = await readSession(browser);
    expect(former.user_id).toBe(staff.userId);
    const others = await readSession(await signIn(colleague.email));
    const before = `now() - interval '3 minutes'`;
    await service.database.query(
      `update sessions set created_at = now() - interval '10 minutes', expires_at = ${before} where id = $1`,
      [former.session_id],
    );
    const back = await signIn(staff.email);
    const present = await readSession(back);
    const { customerCard } = await enrol(store);
    await service.database.query(
      `update sessions set created_at = now() - interval '2 minutes' where id = $1`,
      [present.session_id],
    );
    const book = async (sessionId: number, minutesAgo: number, more: object = {}) => {
      const { results } = await sendBatch(back, [
        {
          operation: 'redeem',
          code: customerCard.code,
          reward_id: 999_999,
          external_ref: `counter-${randomUUID()}`,
          session_id: sessionId,
          occurred_at: new Date(Date.now() - minutesAgo * 60_000).toISOString(),
          ...more,
        },
      ]);
      return results[0]?.is_unattended ?? false;
    };
    expect(await book(present.session_id, 1)).toBe(false);
    expect(await book(present.session_id, 5)).toBe(true);
    expect(await book(former.session_id, 5)).toBe(false);
    expect(await book(former.session_id, 1)).toBe(true);
    expect(await book(former.session_id, 11)).toBe(true);
    expect(await book(others.session_id, 0)).toBe(true);
    expect(await book(2 ** 40, 1)).toBe(true);
    expect(await book(former.session_id, 1, { is_confirmed: true })).toBe(false);
  });

  it('asks before a second stamp within two minutes, by whom the first was', async () => {
    const staff = await member('staff', 'Mira');
    const browser = await signIn(staff.email);
    const { customerCard } = await enrol(store);
    const stamp = (external_ref: string, asks: boolean) =>
      sendBatch(browser, [
        { operation: 'stamp', code: customerCard.code, stamps: 1, external_ref, asks },
      ]);
    expect((await stamp(`a-${customerCard.id}`, true)).results[0]?.status).toBe(200);
    const question = await stamp(`b-${customerCard.id}`, true);
    expect(question.results[0]).toMatchObject({ status: 409, event_id: null });
    expect(question.results[0]?.html).toMatch(/Stamped by you \d+ seconds? ago: add another\?/);
    const otherBrowser = await signIn(store.email);
    const { results } = await sendBatch(otherBrowser, [
      {
        operation: 'stamp',
        code: customerCard.code,
        stamps: 1,
        external_ref: `c-${customerCard.id}`,
        asks: true,
      },
    ]);
    expect(results[0]?.html).toMatch(/Stamped \d+ seconds? ago by Mira: add another\?/);
    expect((await stamp(`b-${customerCard.id}`, false)).results[0]?.status).toBe(200);
  });

  it('says by name why something was refused', async () => {
    const browser = await signIn(store.email);
    const { customerCard } = await enrol(store, { card: { max_stamps_per_day: 1 } });
    const operation = { operation: 'stamp', code: customerCard.code, stamps: 1 };
    const { results } = await sendBatch(browser, [
      { ...operation, external_ref: `day-1-${customerCard.id}` },
      { ...operation, external_ref: `day-2-${customerCard.id}` },
      { ...operation, code: '22222222', external_ref: `unknown-${customerCard.id}` },
    ]);
    expect(results).toMatchObject([
      { status: 200, name: 'Anna' },
      { status: 422, name: 'Anna', problem: expect.stringContaining('no more stamps for now') },
      { status: 404, name: '', problem: 'No card of this store has this code.' },
    ]);
  });

  it('works without a script: stamps, redeems, undoes, and a form that is sent twice counts once', async () => {
    const browser = await signIn((await member('staff', 'Mira')).email);
    const { customerCard, path, rewards } = await enrol(store, { rewards: [2] });
    await browser.get(counter());
    const spaced = ` ${customerCard.code.toLowerCase().replace(/(.{4})/, '$1 ')}`;
    const form = { code: spaced, external_ref: randomUUID() };
    const first = await browser.post(counter('/stamp'), form);
    expect(first.location).toMatch(/[/]cards[/]\d+\?event=evt_/);
    expect((await browser.get(first.location ?? '')).text).toContain('1 stamp added');
    await browser.get(counter());
    await browser.post(counter('/stamp'), form);
    const question = await browser.post(counter('/stamp'), { code: customerCard.code });
    const { text: questionText } = await browser.get(question.location ?? '');
    expect(questionText).toContain('add another?');
    expect(questionText).toContain(
      `href="${counter(`/cards/${customerCard.id}`)}" data-kind="close">No<`,
    );
    const at = { customer_card_id: String(customerCard.id) };
    await browser.post(counter('/stamp'), { ...at, again: 'yes', external_ref: randomUUID() });
    expect(await store.readBalance(path)).toBe(2);
    const redeemed = await browser.post(counter('/redeem'), {
      ...at,
      reward_id: String(rewards[0]?.id),
      external_ref: randomUUID(),
    });
    expect(await store.readBalance(path)).toBe(0);
    const { text } = await browser.get(redeemed.location ?? '');
    expect(text).toContain('Reward at 2 redeemed. Hand it over.');
    const [, event = ''] = /event=(evt_\w+)/.exec(redeemed.location ?? '') ?? [];
    await browser.get(counter('/recent'));
    const undone = await browser.post(counter('/undo'), { ...at, event_id: event });
    expect(undone.location).toBe(redeemed.location);
    const after = (await browser.get(undone.location ?? '')).text;
    expect(after).toContain('Undone');
    expect(after).not.toContain('Hand it over');
    await browser.get(counter('/recent'));
    expect((await browser.post(counter('/undo'), { ...at, event_id: event })).status).toBe(303);
    expect(await store.readBalance(path)).toBe(2);
    const unknown = await browser.post(counter('/stamp'), { code: '22222222' });
    expect([unknown.status, unknown.text.includes('We don’t know 22222222.')]).toEqual([422, true]);
  });

  it('has a page for times without a connection that names nobody, not even a form', async () => {
    const browser = await signIn((await member('staff', 'Mira')).email);
    const { text } = await browser.get(counter('/offline'));
    const hidden = [...text.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)];
    expect(hidden.map(([, name, value]) => [name, value])).toEqual([
      ['_csrf', ''],
      ['external_ref', expect.stringMatching(/^counter-/)],
    ]);
    expect(text).not.toContain('Mira');
  });

  it('shows no notice for names that every object has', async () => {
    const browser = await signIn((await member('staff', 'Mira')).email);
    const { customerCard } = await enrol(store);
    const query = '?done=constructor&problem=toString';
    const { status, text } = await browser.get(counter(`/cards/${customerCard.id}${query}`));
    expect([status, text.includes('native code')]).toEqual([200, false]);
  });

  it('says why a card that has expired meanwhile is not given', async () => {
    const browser = await signIn(store.email);
    const { card } = await enrol(store);
    const path = `${store.store}/cards/${card.id}`;
    await store.send('PATCH', path, { card: { expires_at: '2020-01-01' } });
    await browser.get(counter());
    const form = { contact: 'late@mail.example', card_id: String(card.id) };
    const { text } = await browser.post(counter('/enrol'), form);
    expect(text).toContain('This card has expired: new customers no longer get it.');
    expect(text).not.toContain('Please check the code');
  });

  it('gives a card once, and confirms one, by a form that is sent twice', async () => {
    const browser = await signIn((await member('staff', 'Mira')).email);
    const { card } = await enrol(store);
    const { customer, customerCard } = await enrol(store);
    await browser.get(counter());
    const enrolment = { customer_id: String(customer.id), card_id: String(card.id) };
    const { location } = await browser.post(counter('/enrol'), enrolment);
    expect(location).toMatch(/[/]cards[/]\d+\?done=new$/);
    expect((await browser.post(counter('/enrol'), enrolment)).location).toBe(location);
    const confirm = { customer_card_id: String(customerCard.id), code: customerCard.code };
    const confirmed = await browser.post(counter('/confirm'), confirm);
    expect(confirmed.location).toContain('done=confirmed');
    expect((await browser.post(counter('/confirm'), confirm)).location).toBe(confirmed.location);
  });

  it('adds a customer once by a form that is sent twice, and finds one who is there', async () => {
    const browser = await signIn((await member('staff', 'Mira')).email);
    const { card } = await enrol(store);
    const q = 'zoe.brown@mail.example';
    const readField = (name: string, { text }: { text: string }) =>
      new RegExp(`name="${name}"[^>]*value="([^"]*)"`).exec(text)?.[1];
    expect(readField('contact', await browser.get(counter(`/find?q=${q}`)))).toBe(q);
    const form = { q, contact: q, card_id: String(card.id) };
    const [first, again] = [
      await browser.post(counter('/enrol'), form),
      await browser.post(counter('/enrol'), form),
    ];
    expect(first.location).toMatch(/[/]cards[/]\d+\?done=new$/);
    expect(again.location).toBe(first.location);
    expect((await browser.get(first.location ?? '')).text).toContain('data:image/svg+xml;base64,');
    const { text } = await browser.get(counter('/find?q=zoe.brown'));
    expect(text).toContain('>Zoe<');
    const buttons = text.match(/<(a class="button|button)[^>]*>/g) ?? [];
    expect(buttons.filter((button) => !button.includes('quiet'))).toEqual([
      expect.stringContaining('/cards/'),
    ]);
    expect(readField('name', await browser.get(counter('/find?q=Nobody')))).toBe('Nobody');
    await browser.get(counter());
    for (const contact of ['zoe@', '4915112345678.0', '']) {
      const wrong = await browser.post(counter('/enrol'), { ...form, name: 'Zoe Miles', contact });
      expect([wrong.status, wrong.text.includes('Please check it')]).toEqual([422, true]);
      expect(readField('name', wrong)).toBe('Zoe Miles');
    }
    const named = { ...form, name: 'Ada King Lovelace', contact: 'ada@mail.example' };
    const { location } = await browser.post(counter('/enrol'), named);
    expect((await browser.get(location ?? '')).text).toContain('Ada King Lovelace');
  });

  it('says when there are more customers than it shows', async () => {
    const browser = await signIn((await member('staff', 'Mira')).email);
    const last_name = `Many${randomUUID().slice(0, 8)}`;
    for (let i = 0; i < 11; i++) {
      const customer = { first_name: 'Guest', last_name, email: `${randomUUID()}@mail.example` };
      await store.post(`${store.store}/customers`, { customer });
    }
    const { text } = await browser.get(counter(`/find?q=${last_name}`));
    expect(text).toContain('These are the first 10.');
    expect(text.match(/<h2>Guest Many/g)).toHaveLength(10);
  });
});

describe('the PIN of a member', () => {
  it('needs the password, and is not one that others would guess', async () => {
    const browser = await signIn((await member('staff', 'Mira')).email);
    await browser.get('/app/account/pin');
    const set = (pin: string, current_password: string) =>
      browser.post('/app/account/pin', { pin, current_password });
    expect((await set('1234', PASSWORD)).text).toContain('Others would guess this PIN');
    expect((await set('40718', 'wrong horse')).text).toContain('The password is wrong');
    expect((await set('407', PASSWORD)).text).toContain('A PIN has 4 to 6 digits');
    expect((await set('40718', PASSWORD)).location).toBe('/app/account/pin?done=set');
  });

  it('takes over the counter with the rights of staff alone, and ends the session before', async () => {
    const [present, mira] = [await member('manager', 'Ben'), await member('owner', 'Mira')];
    await setPin(mira.email);
    const browser = await signIn(present.email);
    const before = new Map(browser.cookies);
    expect((await change(browser, mira.userId, PIN)).location).toBe(counter());
    expect((await browser.get(counter())).text).toContain('Mira');
    for (const path of ['/app', '/app/account', `/app/stores/${store.accountId}/users`]) {
      const { status, location } = await browser.get(path);
      expect([path, status, location?.startsWith('/app/sign-in')]).toEqual([path, 303, true]);
    }
    const otherStore = await service.newStore();
    expect((await browser.get(`/counter/${otherStore.accountId}`)).status).toBe(404);
    const former = new Browser(service);
    for (const [name, value] of before) former.cookies.set(name, value);
    expect((await former.get('/app')).location).toContain('/app/sign-in');
    // An owner's PIN undoes what staff may: nothing of others.
    const { customerCard } = await enrol(store);
    const { body } = await store.post<{ event_id: string }>(
      `${store.store}/customer_cards/by_code/${customerCard.code}/stamp`,
      { stamps: 1 },
    );
    await browser.get(counter());
    const refused = await browser.post(counter('/undo'), {
      customer_card_id: String(customerCard.id),
      event_id: body.event_id,
    });
    expect([refused.status, refused.text.includes('A manager can do it')]).toEqual([422, true]);
    await browser.get(counter());
    expect((await browser.post('/app/sign-out')).location).toContain('signed_out');
    expect((await browser.get(counter())).location).toContain('/app/sign-in');
  });

  it('takes over one session, though it is sent twice', async () => {
    const [ben, mira] = [await member('staff', 'Ben'), await member('staff', 'Mira')];
    await setPin(mira.email);
    const browser = await signIn(ben.email);
    await browser.get(counter('/people'));
    await service.database.query('delete from sessions where user_id = $1', [mira.userId]);
    const changes = await Promise.all([
      change(browser, mira.userId, PIN),
      change(browser, mira.userId, PIN),
    ]);
    expect(changes.map(({ location }) => location)).toContain(counter());
    const { rows } = await service.database.query<{ user_id: string }>(
      'select user_id from sessions where user_id = any ($1)',
      [[ben.userId, mira.userId]],
    );
    expect(rows.map(({ user_id: id }) => Number(id))).toEqual([mira.userId]);
  });

  it('ends with the password', async () => {
    const [ben, mira] = [await member('staff', 'Ben'), await member('staff', 'Miranda')];
    await setPin(mira.email);
    await service.execute(new SetPassword(cli, mira.email, 'another battery staple'));
    const browser = await signIn(ben.email);
    expect((await browser.get(counter('/people'))).text).not.toContain('Miranda');
    expect((await change(browser, mira.userId, PIN)).status).toBe(422);
  });

  it('is not checked any more after ten wrong attempts, and counts them at once', async () => {
    const mira = await member('staff', 'Mira');
    await setPin(mira.email);
    const ben = await member('staff', 'Ben');
    const browser = await signIn(ben.email);
    await browser.get(counter('/people'));
    const attempts = await Promise.all(
      Array.from({ length: 14 }, (_, i) =>
        browser.post(counter('/people'), { user_id: String(mira.userId), pin: `90${40 + i}` }),
      ),
    );
    const texts = attempts.map(({ text }) => text);
    expect(texts.filter((text) => text.includes('The PIN is wrong'))).toHaveLength(10);
    expect((await change(browser, mira.userId, PIN)).text).toContain('too many wrong attempts');
    const { rows } = await service.database.query<{ type: string; by: string }>(
      `select distinct type, (actor ->> 'type') || ':' || (actor ->> 'id') as by from audit_log
       where account_id = $1 and (subject ->> 'user_id')::bigint = $2 and type like 'user.%'`,
      [store.accountId, mira.userId],
    );
    // The failures name whoever was at the counter.
    expect(rows).toEqual(
      expect.arrayContaining([
        { type: 'user.pin_set', by: `user:${mira.userId}` },
        { type: 'user.sign_in_failed', by: `user:${ben.userId}` },
        { type: 'user.pin_locked', by: `user:${ben.userId}` },
      ]),
    );
    await setPin(mira.email);
    expect((await change(browser, mira.userId, PIN)).location).toBe(counter());
  });

  it('is not checked any more after fifty wrong attempts, though it was right in between', async () => {
    const [mira, ben] = [await member('staff', 'Mira'), await member('staff', 'Ben')];
    await setPin(mira.email);
    const guess = async (count: number) => {
      const browser = await signIn(ben.email);
      await browser.get(counter('/people'));
      const form = { user_id: String(mira.userId), pin: '9041' };
      await Promise.all(
        Array.from({ length: count }, () => browser.post(counter('/people'), form)),
      );
      return change(browser, mira.userId, PIN);
    };
    await service.database.query(
      'update counter_pins set all_failures = 44, failures = 0 where user_id = $1',
      [mira.userId],
    );
    expect((await guess(3)).location).toBe(counter());
    expect((await guess(2)).location).toBe(counter());
    expect((await guess(1)).text).toContain('too many wrong attempts');
    await setPin(mira.email);
    expect((await guess(0)).location).toBe(counter());
  });

  it('takes over no counter of a store that its user is not in', async () => {
    const stranger = await service.newStore();
    await setPin(stranger.email);
    const { rows } = await service.database.query<{ id: string }>(
      'select id from users where email = $1',
      [stranger.email],
    );
    const browser = await signIn(store.email);
    const { text } = await change(browser, Number(rows[0]?.id), PIN);
    expect(text).toContain('too many wrong attempts');
  });
});
