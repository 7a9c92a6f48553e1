import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { PushNotification } from '#web/web-card/push-notification.js';
import { useService, type Failure } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { enrol, type Enrolled } from '../support/fixtures/enrolled-customer.js';
import {
  startPushService,
  type PushService,
  type SubscribedBrowser,
} from '../support/emulators/web-push/server.mjs';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const ORIGIN = 'https://cards.example';
const service = useService({ WEB_PUSH_ALLOW_INSECURE_ENDPOINTS: 'true', PUBLIC_URL: ORIGIN });
/** Without the setting of tests that lets any server be a push service. */
const strict = useService({ PUBLIC_URL: ORIGIN, WEB_PUSH_SERVICES: '.push.example' });
const store = service.useStore();
let dispatcher: Program;
let pushes: PushService;

beforeAll(async () => {
  pushes = await startPushService();
  dispatcher = await startDispatcher(service.running, {
    WEB_PUSH_ALLOW_INSECURE_ENDPOINTS: 'true',
    PUBLIC_URL: ORIGIN,
  });
});
afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await pushes.stop();
});

async function send(
  method: string,
  page: string,
  body: unknown,
  headers: Record<string, string> = {},
  { baseUrl } = service.running,
) {
  const response = await fetch(`${baseUrl}${page}/push`, {
    method,
    headers: { origin: ORIGIN, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as Failure) };
}

/** A browser that has opened the page and allowed notifications. */
async function subscribed({ page }: Enrolled): Promise<SubscribedBrowser> {
  const html = await (await fetch(service.running.baseUrl + page)).text();
  const [, key = ''] = /data-push-key="([\w-]+)"/.exec(html) ?? [];
  const browser = pushes.subscribe(key);
  expect((await send('POST', page, browser.subscription)).status).toBe(204);
  return browser;
}

async function isInstalled({ path }: Enrolled): Promise<boolean> {
  return (await store.get<CustomerCardDetailJson>(path)).body.pass_installed;
}

async function stored({ customerCard }: Enrolled): Promise<number> {
  const { rows } = await service.running.database.query(
    'select from web_push_subscriptions where customer_card_id = $1',
    [customerCard.id],
  );
  return rows.length;
}

const notificationsOf = (browser: SubscribedBrowser) =>
  browser.messages.map(({ text }) => JSON.parse(text) as PushNotification);

async function messages(browser: SubscribedBrowser, count: number) {
  await eventually(
    () => notificationsOf(browser),
    ({ length }) => length >= count,
  );
  return notificationsOf(browser);
}

describe('notifications of a web card', () => {
  it('WEBCARD-20 A browser that subscribes counts as a place where the card is installed (`pass_installed`)', async () => {
    const card = await enrol(store);
    expect(await isInstalled(card)).toBe(false);
    const browser = await subscribed(card);
    expect(await isInstalled(card)).toBe(true);
    // The page does so at every visit.
    expect((await send('POST', card.page, browser.subscription)).status).toBe(204);
    expect(await stored(card)).toBe(1);
  });

  it('WEBCARD-21 Each change that the holder should know of is notified once, in the language of the store: what happened, where the card stands, and a link to it', async () => {
    const german = await service.newStore();
    await german.patch(german.store, { account: { locale: 'de', store_name: 'Eck-Café' } });
    const card = await enrol(german, {
      card: { name: 'Kaffee' },
      rewards: [['Kuchen', 3]],
    });
    const [one, other] = [await subscribed(card), await subscribed(card)];
    await card.stamp(2);
    const expected = {
      title: 'Eck-Café',
      body: 'Noch 1 Stempel bis zur Prämie: Kuchen.\nKaffee: 2 von 10 Stempeln',
      navigate: `${ORIGIN}${card.page}`,
      lang: 'de',
    };
    expect(await messages(one, 1)).toMatchObject([{ notification: expected }]);
    expect(await messages(other, 1)).toMatchObject([{ notification: expected }]);
    expect(one.messages[0]).toMatchObject({ ttl: 86_400, topic: 'card', urgency: 'normal' });
    await card.stamp(1);
    const [, unlocked] = await messages(one, 2);
    expect(unlocked?.notification.body).toBe(
      'Die Prämie ist da: Kuchen.\nKaffee: 3 von 10 Stempeln',
    );
    expect(notificationsOf(one)).toHaveLength(2);
    expect(pushes.rejections).toEqual([]);
  });

  it('WEBCARD-38 A notification is a declarative message, which browsers that know it show without the service worker', async () => {
    const card = await enrol(store);
    const browser = await subscribed(card);
    await card.stamp(1);
    expect(await messages(browser, 1)).toMatchObject([
      {
        web_push: 8030,
        notification: {
          title: expect.any(String),
          navigate: `${ORIGIN}${card.page}`,
          tag: card.page,
        },
      },
    ]);
    expect(browser.messages[0]?.type).toBe('application/notification+json');
  });

  it('WEBCARD-22 An action with `skip_notifications` sends no notification', async () => {
    const card = await enrol(store);
    const browser = await subscribed(card);
    await card.stamp(1, { skip_notifications: true });
    const { customerCard } = card;
    await eventually(
      async () => {
        const { rows } = await service.running.database.query<{ tag: number; left: number }>(
          `select p.tag, (select count(*) from pass_updates) as left from passes p
           where customer_card_id = $1`,
          [customerCard.id],
        );
        return rows[0];
      },
      (row) => Number(row?.tag) > 0 && Number(row?.left) === 0,
    );
    expect(browser.messages).toEqual([]);
    await card.stamp(1);
    expect((await messages(browser, 1))[0]?.notification.body).toMatch(/^8 more stamps to /);
  });

  it('WEBCARD-23 A browser that unsubscribes, or whose push service responds with 404 or 410, is forgotten', async () => {
    const card = await enrol(store);
    const [one, other] = [await subscribed(card), await subscribed(card)];
    const { endpoint } = one.subscription;
    expect((await send('DELETE', card.page, { endpoint })).status).toBe(204);
    expect([await stored(card), await isInstalled(card)]).toEqual([1, true]);
    other.end();
    await card.stamp(1);
    await eventually(
      () => stored(card),
      (count) => count === 0,
    );
    expect(await isInstalled(card)).toBe(false);
    expect(one.messages).toEqual([]);
    // Unsubscribing once more changes nothing.
    expect((await send('DELETE', card.page, { endpoint })).status).toBe(204);
  });

  it('WEBCARD-24 Only the web card itself may subscribe a browser', async () => {
    const card = await enrol(store);
    const { subscription } = pushes.subscribe('x');
    const { keys } = subscription;
    const refused = async (body: unknown, headers: Record<string, string> = {}) => {
      const response = await send('POST', card.page, body, headers);
      return [response.status, ...Object.keys(response.body?.errors ?? {}).sort()];
    };
    expect(await refused(subscription, { origin: 'https://evil.example' })).toEqual([422, 'base']);
    expect(await refused(subscription, { 'sec-fetch-site': 'cross-site' })).toEqual([422, 'base']);
    expect(await refused({})).toEqual([422, 'endpoint', 'keys.auth', 'keys.p256dh']);
    expect(await refused([null])).toEqual([422, 'endpoint', 'keys.auth', 'keys.p256dh']);
    const point = Buffer.alloc(65, 4).toString('base64url');
    expect(await refused({ ...subscription, keys: { ...keys, p256dh: point } })).toEqual([
      422,
      'keys.p256dh',
    ]);
    expect(await refused({ ...subscription, keys: { ...keys, auth: 'AAAA' } })).toEqual([
      422,
      'keys.auth',
    ]);
    for (const endpoint of [
      'https://10.0.0.1/push',
      'https://169.254.169.254/latest',
      'https://[::ffff:192.168.0.1]/',
      'https://user:pass@push.example/',
      'ftp://push.example/',
      'x',
    ]) {
      expect(await refused({ ...subscription, endpoint })).toEqual([422, 'endpoint']);
    }
    expect((await send('POST', `/passes/${crypto.randomUUID()}`, subscription)).status).toBe(404);
    expect(await stored(card)).toBe(0);
  });

  it('WEBCARD-40 An `endpoint` that is not that of a push service is 422 `endpoint`, and one that was stored before is forgotten', async () => {
    const { page } = await enrol(await strict.newStore());
    const { subscription } = pushes.subscribe('x');
    const subscribe = async (endpoint: string) => {
      const { running } = strict;
      const { status, body } = await send('POST', page, { ...subscription, endpoint }, {}, running);
      return [endpoint, status, ...Object.keys(body?.errors ?? {})];
    };
    for (const endpoint of [
      'https://fcm.googleapis.com/fcm/send/a:b',
      'https://FCM.googleapis.com.:443/wp/a',
      'https://updates.push.services.mozilla.com/wpush/v2/a',
      'https://web.push.apple.com/a',
      'https://wns2-par02p.notify.windows.com/w/?token=a',
      'https://eu.push.example/a',
    ]) {
      expect(await subscribe(endpoint)).toEqual([endpoint, 204]);
    }
    for (const endpoint of [
      'https://internal-host/admin?x=1',
      'https://metadata.google.internal:8080/',
      'https://example.com/',
      'https://push.example/',
      'https://fcm.googleapis.com:8443/',
      'https://fcm.googleapis.com.evil.example/',
      'https://evilpush.apple.com.example/',
      'https://storage.googleapis.com/',
      'https://8.8.8.8/',
      'https://localhost/',
      'http://fcm.googleapis.com/',
      subscription.endpoint,
    ]) {
      expect(await subscribe(endpoint)).toEqual([endpoint, 422, 'endpoint']);
    }
  });

  it('WEBCARD-25 The ten browsers of a card that subscribed last are notified', async () => {
    const card = await enrol(store);
    const browsers: SubscribedBrowser[] = [];
    for (let i = 0; i < 11; i++) browsers.push(await subscribed(card));
    expect(await stored(card)).toBe(10);
    await card.stamp(1);
    for (const browser of browsers.slice(1)) await messages(browser, 1);
    expect(browsers[0]?.messages).toEqual([]);
  });

  it("WEBCARD-26 The addresses of subscribed browsers are sealed with the customer's key, and erasing the customer ends all of them", async () => {
    const card = await enrol(store);
    const browser = await subscribed(card);
    const { rows } = await service.running.database.query<{ sealed: Buffer }>(
      'select sealed from web_push_subscriptions where customer_card_id = $1',
      [card.customerCard.id],
    );
    expect(rows[0]?.sealed.includes('http')).toBe(false);
    const erased = await store.post(`${store.store}/customers/${card.customer.id}/erase`);
    expect(erased.status).toBe(204);
    await eventually(
      () => stored(card),
      (count) => count === 0,
    );
    expect(browser.messages).toEqual([]);
  });

  it('WEBCARD-27 A push service that fails is asked again until it takes the message, for a day', async () => {
    const card = await enrol(store);
    const browser = await subscribed(card);
    let requestCount = 0;
    pushes.respondWith(() =>
      ++requestCount < 3 ? { status: 503, headers: { 'retry-after': '1' } } : undefined,
    );
    await card.stamp(1);
    expect((await messages(browser, 1))[0]?.notification.body).toMatch(/^9 more stamps to /);
    pushes.respondWith(undefined);
    expect(requestCount).toBe(3);
  });
});
