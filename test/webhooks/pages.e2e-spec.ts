import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AddMember } from '#identity/member.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import type { WebhookSubscriptionSecretJson } from '#outbound/subscriptions/webhook-subscription.dto.js';
import { runAtTime } from '../support/services/clock.js';
import { Browser, readFormKey } from '../support/browser/browser.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { Receiver } from '../support/emulators/webhook-receiver.js';
import { eventually } from '../support/jest/eventually.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';
import { subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

const PASSWORD = 'correct horse';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let list: string;

const { receive, shareDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  store = await service.newStore({ timeZone: 'Europe/Berlin' });
  owner = await Browser.signedIn(service, store.email);
  list = `/app/stores/${store.accountId}/webhooks`;
});
afterAll(() => service.stop());

const readWebhook = async (id: number | string) =>
  (await store.get<WebhookSubscriptionSecretJson>(`${store.store}/webhook_subscriptions/${id}`))
    .body;
const findSecret = (text: string) => /whsec_[^<]+/.exec(text)?.[0] ?? '';

/** Subscribes on the page. @returns the id */
async function create(receiver: Receiver, fields: Record<string, string> = {}): Promise<string> {
  const formKey = readFormKey((await owner.get(`${list}/new`)).text);
  const form = {
    form_key: formKey,
    target_url: receiver.url,
    scope: 'all',
    personal_data: 'yes',
    current_password: PASSWORD,
    ...fields,
  };
  const { text } = await owner.submit(`${list}/new`, list, form);
  return /webhooks\/(\d+)"/.exec(text)?.[1] ?? '';
}

describe('the webhooks of the console', () => {
  it('are made once, however often the form is sent, and show their secret once', async () => {
    expect((await owner.get(list)).text).toContain('No webhooks yet');
    const { url } = await receive();
    const formKey = readFormKey((await owner.get(`${list}/new`)).text);
    const form = {
      form_key: formKey,
      target_url: url,
      description: 'Till <1>',
      scope: 'all',
      current_password: PASSWORD,
    };
    const send = () => owner.submit(`${list}/new`, list, form);
    const responses = [...(await Promise.all([send(), send()])), await send()];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    const secret = findSecret(responses[0]?.text ?? '');
    expect(secret).toMatch(/^whsec_/);
    expect(responses.map(({ text }) => findSecret(text))).toEqual([secret, secret, secret]);
    const { text } = await owner.get(list);
    expect(text.split('Till &lt;1&gt;').length).toBe(2);
    const id = /webhooks\/(\d+)"/.exec(text)?.[1] ?? '';
    expect((await owner.get(`${list}/${id}`)).text).not.toContain(secret);
    expect(await readWebhook(id)).toMatchObject({ secret, personal_data: false, events: ['*'] });
  });

  it('are refused with an explanation and the input', async () => {
    const refuse = async (fields: Record<string, string>) => {
      const { status, text } = await owner.submit(`${list}/new`, list, {
        ...fields,
        current_password: PASSWORD,
      });
      expect(status).toBe(422);
      return text;
    };
    expect(await refuse({ target_url: 'no"where' })).toContain('no&quot;where');
    const url = 'https://shop.example/hooks';
    const wrong = await refuse({ target_url: url, scope: 'some', headers: 'nonsense' });
    expect(wrong).toContain('Please choose at least one event.');
    expect(wrong).toContain('Please write each header as');
    const flat = { target_url: url, scope: 'all', payload_format: 'flat' };
    expect(await refuse(flat)).toContain('exactly one event');
    expect(await refuse({ target_url: url, 'card_ids:999999': 'yes' })).toContain(
      'Please choose from',
    );
  });

  it('are edited, with filters, headers and personal data', async () => {
    const { card } = await enrol(store);
    const id = await create(await receive(), { headers: 'X-Key: first' });
    const page = `${list}/${id}`;
    expect((await owner.get(`${page}/edit`)).text).toContain('X-Key: •••');
    const saved = await owner.submit(`${page}/edit`, `${page}/edit`, {
      target_url: (await readWebhook(id)).target_url,
      scope: 'some',
      'events:stamp.earned': 'yes',
      [`card_ids:${card.id}`]: 'yes',
      headers: 'X-Key: •••\nX-Other: second',
      payload_format: 'flat',
      current_password: PASSWORD,
    });
    expect(saved.location).toBe(`${page}?done=saved`);
    expect(await readWebhook(id)).toMatchObject({
      events: ['stamp.earned'],
      card_ids: [card.id],
      location_ids: null,
      headers: { 'X-Key': '•••', 'X-Other': '•••' },
      payload_format: 'flat',
      personal_data: false,
    });
    expect((await owner.get(page)).text).toContain('X-Key, X-Other');
  });

  it('are paused, turned on with what was missed, and deleted', async () => {
    const id = await create(await receive());
    const page = `${list}/${id}`;
    const paused = await owner.submit(page, `${page}/pause`);
    expect(paused.location).toBe(`${page}?done=paused`);
    expect((await owner.get(page)).text).toContain('Somebody paused it.');
    expect((await owner.get(`${page}/enable`)).text).toContain('Also send what was missed');
    const on = await owner.submit(`${page}/enable`, `${page}/enable`, { replay_missed: 'yes' });
    expect(on.location).toBe(`${page}?done=enabledMissed`);
    expect(await readWebhook(id)).toMatchObject({ enabled: true });
    const formKey = readFormKey((await owner.get(`${page}/delete`)).text);
    const remove = () => owner.submit(`${list}/new`, `${page}/delete`, { form_key: formKey });
    const deleted = [await remove(), await remove()].map(({ location }) => location);
    expect(deleted).toEqual([`${list}?done=deleted`, `${list}?done=deleted`]);
    expect((await owner.get(page)).status).toBe(404);
  });

  it('get a new secret once, however often the form is sent', async () => {
    const id = await create(await receive());
    const page = `${list}/${id}`;
    const { secret: former } = await readWebhook(id);
    const formKey = readFormKey((await owner.get(`${page}/rotate`)).text);
    const form = {
      form_key: formKey,
      grace_seconds: '3600',
      signature: 'hmac',
      current_password: PASSWORD,
    };
    const send = () => owner.submit(`${page}/rotate`, `${page}/rotate`, form);
    const sent = [...(await Promise.all([send(), send()])), await send()];
    const { secret } = await readWebhook(id);
    expect(secret).not.toBe(former);
    expect(sent.map(({ text }) => findSecret(text))).toEqual([secret, secret, secret]);
    const findUntil = (text = '') => /Until [^<]+ the old secret signs as well/.exec(text)?.[0];
    expect(findUntil(sent[0]?.text)).toBeDefined();
    const later = await runAtTime(new Date(Date.now() + 3_000_000).toISOString(), send);
    expect(findUntil(later.text)).toBe(findUntil(sent[0]?.text));
    const rotate = (fields: object) =>
      owner.submit(`${page}/rotate`, `${page}/rotate`, { ...form, ...fields });
    expect((await rotate({ form_key: 'other', grace_seconds: '-1' })).status).toBe(422);
    const mistyped = { grace_seconds: '604800', signature: 'ed25519', current_password: 'wrong' };
    const rejected = await rotate({ form_key: 'mistyped', ...mistyped });
    expect(rejected.text).toMatch(/value="604800" selected[^]*value="ed25519" selected/);
    const { text } = await rotate({ form_key: 'key', grace_seconds: '0', signature: 'ed25519' });
    expect(text).toContain((await readWebhook(id)).public_key);
  });

  it('are tested, and say whether it arrived', async () => {
    const receiver = await receive((_, nth) => ({ status: nth === 1 ? 204 : 500 }));
    const id = await create(receiver);
    const page = `${list}/${id}`;
    const test = async () => {
      const formKey = readFormKey((await owner.get(page)).text);
      return (await owner.submit(page, `${page}/test`, { form_key: formKey })).location ?? '';
    };
    expect(await test()).toBe(`${page}?done=tested`);
    const failed = await test();
    expect(failed).toBe(`${page}?done=testFailed`);
    expect((await owner.get(failed)).text).toContain('The test event did not arrive.');
    for (const path of [page, `${page}/deliveries`]) {
      expect((await owner.get(path)).text).toMatch(
        /<dt>Last test<\/dt><dd>Failed on [^<]+: Responded with 500 · [\d,]+ ms<\/dd>/,
      );
    }
    expect(receiver.received).toHaveLength(2);
  });

  it('are not tested while other tests are running, which the page says', async () => {
    let respond = () => {};
    const reply = new Promise<{ status: number }>((resolve) => {
      respond = () => resolve({ status: 204 });
    });
    const receiver = await receive(() => reply);
    const page = `${list}/${await create(receiver)}`;
    const test = async () => {
      const formKey = readFormKey((await owner.get(page)).text);
      return owner.submit(page, `${page}/test`, { form_key: formKey });
    };
    const running = Array.from({ length: 4 }, test);
    await eventually(
      () => receiver.received.length,
      (count) => count === 4,
    );
    const refused = await test();
    respond();
    expect([refused.status, refused.text]).toEqual([
      422,
      expect.stringContaining('Other tests are still running.'),
    ]);
    for (const { location } of await Promise.all(running))
      expect(location).toBe(`${page}?done=tested`);
  });

  it('show their deliveries with every attempt, and send them again', async () => {
    let isClosed = true;
    const receiver = await receive(() =>
      isClosed ? { status: 503, body: 'closed <now>' } : { status: 200 },
    );
    const { id } = await subscribe(store, receiver);
    await shareDispatcher();
    const enrolled = await enrol(store);
    await enrolled.stamp(1);
    const deliveries = `${list}/${id}/deliveries`;
    await eventually(
      () => owner.get(`${deliveries}?status=pending`),
      (page) => page.text.includes('<span class="tag warn">Trying again</span>'),
    );
    isClosed = false;
    await eventually(
      () => owner.get(`${deliveries}?status=pending`),
      (page) => page.text.includes('No deliveries'),
    );
    const { text } = await owner.get(`${deliveries}?status=delivered`);
    const attempts = receiver.received.length;
    const delivery = /href="([^"]*deliveries\/\d+)"/.exec(text)?.[1] ?? '';
    const page = await owner.get(delivery);
    expect(page.text).toContain('HTTP status 503');
    expect(page.text).toContain('closed &lt;now&gt;');
    const formKey = readFormKey(page.text);
    const send = () => owner.submit(delivery, `${delivery}/redeliver`, { form_key: formKey });
    const sent = await Promise.all([send(), send()]);
    expect(sent.map(({ location }) => location)).toEqual(
      sent.map(() => `${delivery}?done=redelivered`),
    );
    await eventually(
      () => receiver.received,
      (received) => received.length === attempts + 1,
    );
    expect((await owner.get(`${deliveries}?status=failed`)).text).toContain('No deliveries');
    expect((await owner.get(`${deliveries}?type=customer.created`)).text).toContain(
      'No deliveries',
    );
    expect((await owner.get(`${deliveries}?to=2020-01-01`)).text).toContain('No deliveries');
    expect((await owner.get(`${deliveries}?after=${'9'.repeat(19)}`)).status).toBe(200);
    expect((await owner.get(`${deliveries}?after=1`)).text).toContain('No deliveries');
  });

  it('send the events of a period again, once', async () => {
    const receiver = await receive();
    const { id } = await subscribe(store, receiver);
    await shareDispatcher();
    const enrolled = await enrol(store);
    await enrolled.stamp(1);
    await eventually(
      () => receiver.received,
      (received) => received.length === 1,
    );
    const replay = `${list}/${id}/replay`;
    const { text } = await owner.get(replay);
    expect(text).toContain('Europe/Berlin');
    const from = /name="from"[^>]*value="([^"]+)"/.exec(text)?.[1] ?? '';
    const form = { form_key: readFormKey(text), from, to: '', scope: 'all' };
    const send = () => owner.submit(replay, replay, form);
    const sent = [...(await Promise.all([send(), send()])), await send()];
    const { location } = sent[0] ?? {};
    expect(location).toMatch(/\?replayed=\d+$/);
    expect(sent.map((response) => response.location)).toEqual([location, location, location]);
    expect((await owner.get(location ?? '')).text).toContain('being sent again.');
    const refused = await owner.submit(replay, replay, { from: 'now', to: '', scope: 'all' });
    expect([refused.status, refused.text.includes('Please enter a valid date.')]).toEqual([
      422,
      true,
    ]);
    const backwards = { from: '2026-02-01T10:00', to: '2026-01-01T10:00', scope: 'all' };
    expect((await owner.submit(replay, replay, backwards)).text).toContain('The end must be after');
  });

  it('are for owners of the store only', async () => {
    const id = await create(await receive());
    const email = `${randomUUID()}@team.example`;
    await service.execute(new CreateUser(cli, email, 'Mira', 'correct horse'));
    await service.execute(new AddMember(cli, store.accountId, email, 'manager'));
    const manager = await Browser.signedIn(service, email);
    const otherStore = await service.newStore();
    const stranger = await Browser.signedIn(service, otherStore.email);
    const theirs = `/app/stores/${otherStore.accountId}/webhooks`;
    const pages = ['', '/edit', '/enable', '/rotate', '/delete', '/deliveries', '/replay'];
    for (const path of pages) {
      expect([path, (await manager.get(`${list}/${id}${path}`)).status]).toEqual([path, 403]);
      expect([path, (await stranger.get(`${list}/${id}${path}`)).status]).toEqual([path, 404]);
      expect([path, (await stranger.get(`${theirs}/${id}${path}`)).status]).toEqual([path, 404]);
    }
    for (const form of ['/edit', '/pause', '/enable', '/test', '/rotate', '/delete', '/replay']) {
      const fields = { form_key: form, target_url: 'https://a.example/', scope: 'all' };
      const sent = await stranger.submit(`${theirs}/new`, `${theirs}/${id}${form}`, fields);
      expect([form, sent.status]).toEqual([form, 404]);
    }
    expect(await readWebhook(id)).toMatchObject({ enabled: true });
  });
});
