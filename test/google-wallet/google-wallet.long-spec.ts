import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { GoogleObjectSender } from '#outbound/google-wallet/google-object.sender.js';
import { GoogleObjects, UNCERTAIN_HASH } from '#outbound/google-wallet/google-objects.service.js';
import { VendorRateLimiter } from '#platform/database/vendor-rate-limiter.js';
import { GooglePasses } from '#outbound/google-wallet/google-passes.service.js';
import { GoogleTokens } from '#outbound/google-wallet/google-tokens.client.js';
import { eventually } from '../support/jest/eventually.js';
import {
  findBalance,
  listNotifications,
  findObject,
  openLink,
  saveToGoogle,
  waitForBalance,
} from '../support/emulators/google/passes.js';
import { startGoogleWallet, type GoogleWallet } from '../support/emulators/google/server.mjs';
import type { Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp, startDispatcher } from '../support/services/webhook-dispatcher.js';

let google: GoogleWallet;
let service: LocalService;
let store: Client;
const dispatchers: Program[] = [];

beforeAll(async () => {
  google = await startGoogleWallet();
  service = await startService(google.environment);
});
afterAll(async () => {
  await service.stop();
  await google.stop();
});
beforeEach(async () => {
  store = await service.newStore();
});
afterEach(async () => {
  google.hold(false);
  await Promise.all(dispatchers.splice(0).map((dispatcher) => dispatcher.kill('SIGTERM')));
});

async function dispatch(): Promise<Program> {
  const dispatcher = await startDispatcher(service);
  dispatchers.push(dispatcher);
  return dispatcher;
}

/** Enrols a customer who has the card in Google Wallet. */
async function enrolWithGoogle(options: Parameters<typeof enrol>[1] = {}) {
  const story = await enrol(store, options);
  await saveToGoogle(google, store, story.customerCard.uuid);
  return { ...story, uuid: story.customerCard.uuid };
}

const findWrites = (part: string, method?: string) =>
  google.writes.filter(
    ({ path, body, method: by }) =>
      (path.includes(part) || String(body['id']).includes(part)) &&
      (method === undefined || method === by),
  );

/** Waits until all changes were processed and all updates sent. */
async function waitUntilSent(): Promise<void> {
  const count = async (text: string) =>
    (await service.database.query<{ n: number }>(text)).rows[0]?.n;
  await eventually(
    async () => [
      await count('select count(*)::int as n from pass_updates'),
      await count('select count(*)::int as n from pass_refreshes'),
    ],
    (left) => left.every((n) => n === 0),
  );
}

describe('an update to Google Wallet', () => {
  it('is one request for a new card name that three customers see, without a notification to them', async () => {
    await dispatch();
    const first = await enrolWithGoogle({ rewards: [5] });
    const uuids = [first.uuid];
    for (const name of ['Ben', 'Cleo']) {
      const { body } = await store.post<{ customer_card: { uuid: string } }>(
        `${store.store}/customers`,
        { customer: { first_name: name, email: `${name}@example.com` }, card_id: first.card.id },
      );
      uuids.push(body.customer_card.uuid);
      await saveToGoogle(google, store, body.customer_card.uuid);
    }
    const before = google.writes.length;
    const changes = { card: { name: 'Espresso' } };
    expect(
      (await store.send('PATCH', `${store.store}/cards/${first.card.id}`, changes)).status,
    ).toBe(200);
    await eventually(
      () => findWrites(`card_${first.card.id}_`, 'PATCH'),
      ({ length }) => length > 0,
    );
    await waitUntilSent();
    const writes = google.writes.slice(before);
    expect(writes.map(({ method, path }) => [method, path.split('/')[0]])).toEqual([
      ['PATCH', 'loyaltyClass'],
    ]);
    expect(uuids.map((uuid) => listNotifications(google, uuid).length)).toEqual([0, 0, 0]);
  });

  it('is not sent when Google has the same state already', async () => {
    await dispatch();
    const { uuid, path } = await enrolWithGoogle();
    const before = google.writes.length;
    await stamp(store, path);
    await waitForBalance(google, uuid, '1 / 10');
    await waitUntilSent();
    const { rows } = await service.database.query<{ customer_card_id: number }>(
      `select customer_card_id from passes where customer_card_id =
         (select id from customer_cards where uuid = $1)`,
      [uuid],
    );
    const sender = service.app.get(GoogleObjectSender, { strict: false });
    const update = {
      channel: 'google_object',
      target: String(rows[0]?.customer_card_id),
      accountId: store.accountId,
      attempts: 1,
    } as const;
    const never = new AbortController().signal;
    expect(await sender.send(update, never)).toEqual({ kind: 'done' });
    expect(google.writes.length).toBe(before + 1);
    expect(await openLink(store, uuid)).toContain(google.saveUrl);
    expect(google.writes.length).toBe(before + 1);
  });

  it('is sent after an outage, with one notification', async () => {
    await dispatch();
    const { uuid, path, customerCard } = await enrolWithGoogle({ rewards: [9] });
    await google.stopListening();
    await stamp(store, path, 4);
    await eventually(
      async () =>
        (
          await service.database.query<{ attempts: number }>(
            'select attempts from pass_updates where target = $1',
            [String(customerCard.id)],
          )
        ).rows[0]?.attempts ?? 0,
      (attempts) => attempts > 1,
    );
    await google.listenAgain();
    await waitForBalance(google, uuid, '4 / 10');
    await waitUntilSent();
    expect(listNotifications(google, uuid).map(({ text }) => text)).toEqual(['4 / 10']);
  });

  it('is retried after a server error, a rate limit and an expired token', async () => {
    await dispatch();
    const { uuid, path } = await enrolWithGoogle();
    google.fail(1, { status: 503 });
    await stamp(store, path);
    await waitForBalance(google, uuid, '1 / 10');
    google.fail(1, { status: 403, reason: 'rateLimitExceeded' });
    await stamp(store, path);
    await waitForBalance(google, uuid, '2 / 10');
    google.expireTokens();
    await stamp(store, path);
    await waitForBalance(google, uuid, '3 / 10');
    await waitUntilSent();
    expect(listNotifications(google, uuid).map(({ text }) => text)).toEqual([
      '1 / 10',
      '2 / 10',
      '3 / 10',
    ]);
  });

  it('creates the object and its class again when Google has lost them', async () => {
    await dispatch();
    const { uuid, path, card } = await enrolWithGoogle();
    google.objects.clear();
    google.classes.clear();
    await stamp(store, path);
    await waitForBalance(google, uuid, '1 / 10');
    expect([...google.classes.keys()].join()).toContain(`card_${card.id}_`);
  });

  it('notifies the customer once although the response was lost', async () => {
    await dispatch();
    const { uuid, path } = await enrolWithGoogle({ rewards: [2] });
    google.fail(1, { status: 500, afterwards: true });
    await stamp(store, path);
    await waitForBalance(google, uuid, '1 / 10');
    await waitUntilSent();
    expect(listNotifications(google, uuid)).toHaveLength(1);
    google.fail(1, { status: 500, afterwards: true, on: 'addMessage' });
    await stamp(store, path);
    await waitForBalance(google, uuid, '2 / 10');
    await waitUntilSent();
    expect(listNotifications(google, uuid).map(({ kind }) => kind)).toEqual(['update', 'message']);
    expect(findWrites(`${uuid}_inkpad/addMessage`)).toHaveLength(1);
  });

  it('is sent when the change was undone whose response was lost', async () => {
    const { uuid, path, card, customerCard } = await enrolWithGoogle();
    const passes = service.app.get(GooglePasses, { strict: false });
    const never = new AbortController().signal;
    const adjust = (stamps: number) => store.post(`${path}/adjust`, { stamps, reason: 'mistake' });
    google.fail(1, { status: 500, afterwards: true });
    await adjust(1);
    expect((await passes.publishObject(customerCard.id, 1, never)).kind).toBe('failed');
    expect(findBalance(google, uuid)).toBe('1 / 10');
    await adjust(-1);
    expect(await passes.publishObject(customerCard.id, 2, never)).toEqual({ kind: 'done' });
    expect(findBalance(google, uuid)).toBe('0 / 10');

    const rename = (name: string) =>
      store.send('PATCH', `${store.store}/cards/${card.id}`, { card: { name } });
    const readName = () =>
      [...google.classes.values()].find(({ id }) => id.includes(`card_${card.id}_`))?.[
        'programName'
      ];
    const before = readName();
    google.fail(1, { status: 500, afterwards: true });
    await rename('Mistake');
    expect((await passes.publishClass(card.id, 1, never)).kind).toBe('failed');
    expect(readName()).not.toBe(before);
    await rename(card.name);
    expect(await passes.publishClass(card.id, 2, never)).toEqual({ kind: 'done' });
    expect(readName()).toBe(before);
  });

  it('reaches Google although the message of the store is refused, and the other way round', async () => {
    const { uuid, path, customerCard } = await enrolWithGoogle();
    const passes = service.app.get(GooglePasses, { strict: false });
    const never = new AbortController().signal;
    const publish = () => passes.publishObject(customerCard.id, 5, never);
    const write = async (id: number, title: string) => {
      const { rowCount } = await service.database.query(
        `update passes set message_tag = nextval('pass_tags'), message = jsonb_build_object('id', $3::int, 'place', 'wallet',
           'title', $2::text, 'text', 'Until Tuesday.', 'at', now())
         where customer_card_id = $1`,
        [customerCard.id, title, id],
      );
      expect(rowCount).toBe(1);
    };
    const adjust = () => store.post(`${path}/adjust`, { stamps: 1, reason: 'mistake' });
    await adjust();
    await publish();
    await adjust();
    await write(1, 'First');
    google.fail(1, { status: 400 });
    expect((await publish()).kind).toBe('refused');
    expect(findBalance(google, uuid)).toBe('1 / 10');
    expect(JSON.stringify(findObject(google, uuid))).toContain('First');
    await write(2, 'Second');
    google.fail(1, { status: 400, on: 'addMessage' });
    expect((await publish()).kind).toBe('refused');
    expect(findBalance(google, uuid)).toBe('2 / 10');
    expect(JSON.stringify(findObject(google, uuid))).not.toContain('Second');
  });

  it('is not recorded as sent by a process whose lease has expired', async () => {
    const { card, customerCard } = await enrolWithGoogle();
    const objects = service.app.get(GoogleObjects, { strict: false });
    const hold = async () => {
      const objectLease = await objects.leaseObject(customerCard.id);
      const classLease = await objects.leaseClass(card.id);
      if (!objectLease || objectLease === 'busy' || !classLease || classLease === 'busy')
        throw new Error('busy');
      return { objectLease, classLease };
    };
    const late = await hold();
    await service.database.query(`update google_objects set leased_until = now()`);
    await service.database.query(`update google_classes set leased_until = now()`);
    const second = await hold();
    for (const [{ objectLease, classLease }, hash] of [
      [second, 'newer'],
      [late, 'older'],
    ] as const) {
      await objects.recordSentObject(objectLease, UNCERTAIN_HASH);
      await objects.recordSentObject(objectLease, hash);
      await objects.releaseObject(objectLease);
      await objects.recordSentClass(classLease, UNCERTAIN_HASH);
      await objects.recordSentClass(classLease, hash);
      await objects.releaseClass(classLease);
    }
    const { objectLease, classLease } = await hold();
    expect([objectLease.sentHash, classLease.sentHash]).toEqual(['newer', 'newer']);
    await objects.releaseObject(objectLease);
    await objects.releaseClass(classLease);
  });

  it('notifies each customer once with two dispatchers, which share one rate limit', async () => {
    await Promise.all([dispatch(), dispatch()]);
    const cards = [];
    for (let i = 0; i < 6; i++) cards.push(await enrolWithGoogle());
    const from = google.requests.length;
    await Promise.all(cards.map(({ path }) => stamp(store, path, 2)));
    for (const { uuid } of cards) await waitForBalance(google, uuid, '2 / 10');
    await waitUntilSent();
    for (const { uuid } of cards) {
      const notifications = listNotifications(google, uuid).map(({ text }) => text);
      expect(notifications.at(-1)).toBe('2 / 10');
      expect(new Set(notifications).size).toBe(notifications.length);
    }
    const times = google.requests.slice(from).map(({ at }) => at);
    // 15 a second, and a few more because requests may take different times to arrive.
    for (const [i, at] of times.entries()) {
      const inOneSecond = times.slice(i).filter((otherTime) => otherTime < at + 1000).length;
      expect(inOneSecond).toBeLessThanOrEqual(18);
    }
  });

  it('is sent by another dispatcher when the first is killed while sending it', async () => {
    const dispatcher = await dispatch();
    const { uuid, path } = await enrolWithGoogle({ rewards: [1] });
    google.hold(true);
    const before = google.tokenRequests;
    await stamp(store, path);
    await eventually(
      async () =>
        (
          await service.database.query<{ busy: boolean }>(
            'select leased_until is not null as busy from google_objects where account_id = $1',
            [store.accountId],
          )
        ).rows[0]?.busy ?? false,
      (busy) => busy,
    );
    await dispatcher.kill('SIGKILL');
    expect(google.tokenRequests).toBe(before);
    google.hold(false);
    // Expires the killed dispatcher's lease.
    await service.database.query('update google_objects set leased_until = null');
    await service.database.query('update pass_updates set due_at = now()');
    await dispatch();
    await waitForBalance(google, uuid, '1 / 10');
    await waitUntilSent();
    expect(listNotifications(google, uuid).map(({ text }) => text)).toEqual([
      'Your reward is ready: Reward at 1.',
    ]);
  });

  it('is sent for a pass that the customer has not saved yet', async () => {
    const { customerCard, path } = await enrol(store);
    await openLink(store, customerCard.uuid);
    await stamp(store, path);
    await dispatch();
    expect(await waitForBalance(google, customerCard.uuid, '1 / 10')).toBe('1 / 10');
  });
});

describe('the limit of three notifications a day', () => {
  it('counts each notification for 24 hours', async () => {
    await dispatch();
    const { uuid, path } = await enrolWithGoogle();
    for (const n of [1, 2, 3, 4]) {
      await stamp(store, path);
      await waitForBalance(google, uuid, `${n} / 10`);
    }
    await waitUntilSent();
    expect(listNotifications(google, uuid)).toHaveLength(3);
    await service.database.query(
      `update google_notifications set sent_at = sent_at - interval '24 hours' where tag =
         (select min(tag) from google_notifications n join google_objects o using (customer_card_id)
          where o.account_id = $1)`,
      [store.accountId],
    );
    for (const notification of listNotifications(google, uuid)) notification.at -= 25 * 3600_000;
    await stamp(store, path);
    await waitForBalance(google, uuid, '5 / 10');
    await stamp(store, path);
    await waitForBalance(google, uuid, '6 / 10');
    await waitUntilSent();
    expect(listNotifications(google, uuid).map(({ text }) => text)).toEqual([
      '1 / 10',
      '2 / 10',
      '3 / 10',
      '5 / 10',
    ]);
  });

  it('leaves a message without a notification on the pass when Google has counted three already', async () => {
    await dispatch();
    const { uuid, path } = await enrolWithGoogle({ rewards: [1] });
    const { id: objectId } = findObject(google, uuid) ?? { id: '' };
    for (let i = 0; i < 3; i++) {
      google.notifications.push({
        kind: 'message',
        objectId,
        text: 'x',
        at: Date.now(),
        seen: true,
      });
    }
    await stamp(store, path);
    await eventually(
      () => JSON.stringify(findObject(google, uuid)?.['messages'] ?? []),
      (messages) => messages.includes('Reward at 1'),
    );
    await waitUntilSent();
    expect(findBalance(google, uuid)).toBe('1 / 10');
    expect(listNotifications(google, uuid)).toHaveLength(3);
  });
});

describe('the api', () => {
  it('requests one token from Google for 20 callers', async () => {
    const tokens = service.app.get(GoogleTokens, { strict: false });
    google.expireTokens();
    const never = new AbortController().signal;
    tokens.forget(await tokens.get(never));
    const before = google.tokenRequests;
    const all = await Promise.all(Array.from({ length: 20 }, () => tokens.get(never)));
    expect(new Set(all).size).toBe(1);
    expect(google.tokenRequests).toBe(before + 1);
  });

  it('stops waiting for a token when the caller’s signal is aborted', async () => {
    const tokens = service.app.get(GoogleTokens, { strict: false });
    tokens.forget(await tokens.get(new AbortController().signal));
    google.hold(true);
    await expect(tokens.get(AbortSignal.timeout(50))).rejects.toThrow();
    google.hold(false);
  });

  it('spreads 16 requests to Google over a second, and refuses one that would have to wait too long', async () => {
    const rateLimiter = service.app.get(VendorRateLimiter, { strict: false });
    const never = new AbortController().signal;
    const { query } = service.database;
    const startedAt = Date.now();
    await query('update vendor_rate_limits set next_at = clock_timestamp()');
    expect(
      await Promise.all(Array.from({ length: 16 }, () => rateLimiter.acquire('google', 15, never))),
    ).toEqual(Array.from({ length: 16 }, () => true));
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
    await query(`update vendor_rate_limits set next_at = clock_timestamp() + interval '1 hour'`);
    expect(await rateLimiter.acquire('google', 15, never)).toBe(false);
    await query('update vendor_rate_limits set next_at = clock_timestamp()');
    await rateLimiter.pauseFor('google', 3_600_000);
    expect(await rateLimiter.acquire('google', 15, AbortSignal.timeout(20))).toBe(false);
    await query('update vendor_rate_limits set next_at = clock_timestamp()');
  });

  it('creates one object for four requests of a link at the same time', async () => {
    const { customerCard } = await enrol(store);
    const links = await Promise.all(
      Array.from({ length: 4 }, () => openLink(store, customerCard.uuid)),
    );
    for (const link of links) expect((await google.save(link)).status).toBe(200);
    expect(findWrites(customerCard.uuid, 'POST')).toHaveLength(1);
  });

  it('responds with a link when Google does not respond', async () => {
    const { customerCard } = await enrol(store);
    google.hold(true);
    const link = await openLink(store, customerCard.uuid);
    google.hold(false);
    expect(link).toMatch(/^(http:.*save|https:\/\/cards\.example\/passes)/);
  });
});
