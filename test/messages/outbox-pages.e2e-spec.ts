import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { CreateUser } from '#identity/identity.commands.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { OutgoingMessages } from '#outbound/messages/outgoing-messages.service.js';
import { AddMember } from '#identity/member.commands.js';
import { Browser } from '../support/browser/browser.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { cli, startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { CARD_LINKS } from '../support/database/card-links.js';

let service: LocalService;
let mails: MailServer;
let store: Client & { email: string };
let owner: Browser;

beforeAll(async () => {
  mails = await MailServer.start();
  service = await startService({
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  });
  store = await service.newStore({ locale: 'en-DE' });
  owner = await Browser.signedIn(service, store.email);
});
afterAll(async () => {
  await Promise.all([mails.goAway(), service.stop()]);
});

const toOutboxPath = ({ accountId }: Client) => `/app/stores/${accountId}/messages/links`;

/** Runs a dispatcher with these settings until it has nothing left to send. */
async function runDispatcher(settings: NodeJS.ProcessEnv): Promise<void> {
  const follower = new MessageFollower(service, { SMTP_URL: '', MAIL_FROM: '', ...settings });
  try {
    await follower.waitUntilSettled();
  } finally {
    await follower.stop();
  }
}

const parseLinks = (text: string, base: string) =>
  [...text.matchAll(/<a class="[^"]+" href="([^"]+)">Show/g)]
    .map(([, path = '']) => path)
    .filter((path) => path.startsWith(`${base}/`));

/** Enrols a customer whose message cannot be sent, because no mail server is set up. */
async function createHolder(
  client: Client,
  customer: object,
): Promise<{ path: string; uuid: string }> {
  const { customerCard } = await enrol(client, { customer, links: true });
  await runDispatcher({});
  const { rows } = await service.database.query<{ id: string }>(
    `select id from ${CARD_LINKS} where customer_card_id = $1`,
    [customerCard.id],
  );
  return { path: `${toOutboxPath(client)}/${rows[0]?.id}`, uuid: customerCard.uuid };
}

describe('the outbox of a store', () => {
  it('says that there are no messages yet while it is empty', async () => {
    const { status, text } = await owner.get(toOutboxPath(store));
    expect([status, text]).toEqual([200, expect.stringContaining('No messages yet')]);
  });

  it('lists an unsent message, shows its text on a page of its own, and sends it once on request', async () => {
    const email = 'grace@mail.example';
    const { path, uuid } = await createHolder(store, {
      first_name: 'Grace',
      last_name: '<b>H</b>',
      email,
    });
    const list = await owner.get(toOutboxPath(store));
    expect(parseLinks(list.text, toOutboxPath(store))).toEqual([path]);
    expect(list.text).toContain('Grace &lt;b&gt;H&lt;/b&gt;');
    expect(list.text).toContain('Not sent yet');
    expect(list.text).not.toContain(email);
    const page = await owner.get(path);
    expect(page.status).toBe(200);
    expect(page.text).toContain(email);
    expect(page.text).toContain('Your stamp card from Corner Café');
    expect(page.text).toContain(`https://cards.example/passes/${uuid}`);
    const response = await owner.submit(path, `${path}/send`);
    expect([response.status, response.location]).toEqual([303, `${path}?done=sent`]);
    expect((await owner.get(`${path}?done=sent`)).text).toContain('It is in the queue now.');
    await runDispatcher({ SMTP_URL: mails.url, MAIL_FROM: 'Inkpad <inkpad@shop.example>' });
    expect(mails.received.map(({ to }) => to)).toEqual([email]);
    const after = await owner.get(path);
    expect(after.text).toContain('Handed to the mail server');
    // The button is pressed once more in another tab.
    const secondResponse = await owner.submit(toOutboxPath(store), `${path}/send`);
    expect([secondResponse.status, secondResponse.location]).toEqual([303, path]);
    expect(after.text).not.toContain('Send now');
  });

  it('audits only the 1st and the 10th of ten requests to send a message again', async () => {
    const { path } = await createHolder(store, { email: 'often@mail.example' });
    const id = path.split('/').at(-1);
    for (let i = 0; i < 10; i++) {
      expect((await owner.submit(path, `${path}/send`)).location).toBe(`${path}?done=sent`);
      await service.database.query(
        `update outgoing_messages set state = 'failed', due_at = null where uuid = $1`,
        [id],
      );
    }
    const { rows } = await service.database.query<{ times: string }>(
      `select subject ->> 'times' as times from audit_log
       where type = 'card_message.sent_again' and subject ->> 'card_message_id' = $1 order by id`,
      [id],
    );
    expect(rows.map(({ times }) => times)).toEqual(['1', '10']);
  });

  it('sends nothing to an erased customer, nor to a phone number without an SMS provider', async () => {
    const { path } = await createHolder(store, { email: null, phone: '+4915112345678' });
    const { text } = await owner.get(path);
    expect(text).toContain('Nothing was sent, because no SMS provider is set up. Once');
    expect(text).not.toContain('Send now');
    const other = await createHolder(store, { email: 'ada@mail.example' });
    const { rows } = await service.database.query<{ customer_id: string }>(
      `select customer_id from ${CARD_LINKS} where id = $1`,
      [other.path.split('/').at(-1)],
    );
    const erase = `${store.store}/customers/${rows[0]?.customer_id}/erase`;
    expect((await store.post(erase)).status).toBe(204);
    const response = await owner.submit(toOutboxPath(store), `${other.path}/send`);
    expect([response.status, response.location]).toEqual([303, other.path]);
    const after = await owner.get(other.path);
    expect(after.text).toContain('Message to somebody who is no longer a customer');
    expect((await owner.get(toOutboxPath(store))).text).toContain('No longer a customer');
    expect(after.text).not.toMatch(/ada@mail|Send now|erased/i);
  });

  it('shows no message of another store', async () => {
    const other = await service.newStore();
    const { path } = await createHolder(other, { email: 'other@mail.example' });
    const id = path.split('/').at(-1);
    for (const wrong of [
      path,
      toOutboxPath(other),
      `${toOutboxPath(store)}/${id}`,
      `${toOutboxPath(store)}/1`,
    ]) {
      expect((await owner.get(wrong)).status).toBe(404);
    }
    expect((await owner.get(`${toOutboxPath(store)}?after=${id}`)).text).toContain(
      'No messages yet',
    );
  });

  it('responds 403 to staff', async () => {
    const email = 'staff@shop.example';
    await service.execute(new CreateUser(cli, email, 'Sam', 'correct horse'));
    await service.execute(new AddMember(cli, store.accountId, email, 'staff'));
    const staff = await Browser.signedIn(service, email);
    expect((await staff.get(toOutboxPath(store))).status).toBe(403);
  });

  it('lists 50 messages a page, newest first', async () => {
    const busyStore = await service.newStore();
    const { customerCard, customer } = await enrol(busyStore);
    await service.database.query(
      `insert into outgoing_messages (kind, give_up_at, account_id, customer_id, customer_card_id, created_at, channel, state,
         finished_at)
       select 'card_link', now(), $1, $2, $3, now() - (n / 2) * interval '1 minute', 'email', 'sent', now()
       from generate_series(1, 120) n`,
      [busyStore.accountId, customer.id, customerCard.id],
    );
    const manager = await Browser.signedIn(service, busyStore.email);
    const paths: string[] = [];
    const sizes: number[] = [];
    for (let next: string | undefined = toOutboxPath(busyStore); next !== undefined;) {
      const { text } = await manager.get(next);
      const links = parseLinks(text, toOutboxPath(busyStore));
      paths.push(...links);
      sizes.push(links.length);
      [, next] = /href="([^"]+\?after=[^"]+)">Next page/.exec(text) ?? [];
    }
    expect(sizes).toEqual([50, 50, 20]);
    const { rows } = await service.database.query<{ id: string }>(
      `select id from ${CARD_LINKS} where account_id = $1 order by requested_at desc, place desc`,
      [busyStore.accountId],
    );
    expect(paths).toEqual(rows.map(({ id }) => `${toOutboxPath(busyStore)}/${id}`));
  });
});

describe('the outcome of an e-mail whose lease has ended meanwhile', () => {
  it.each([
    ['refused', [{ state: 'queued' }]],
    ['done', []],
  ] as const)('counts only when it was sent: %s', async (kind, left) => {
    const outbox = service.app.get(MailOutbox, { strict: false });
    const [id] = await outbox.add(service.app.get(pg.Pool), [
      { to: 'a@shop.example', subject: 'Hello', text: 'Hello' },
    ]);
    const queue = service.app.get(OutgoingMessages, { strict: false });
    const [mail] = (await queue.claim(100, 'mail', 'email')).filter(({ uuid }) => uuid === id);
    if (!mail) throw new Error('it was added');
    await service.database.query(
      "update outgoing_messages set due_at = now() + interval '1 hour' where uuid = $1",
      [id],
    );
    await queue.finish(mail, kind === 'done' ? { kind } : { kind, error: '550' });
    const { rows } = await service.database.query(
      'select state from outgoing_messages where uuid = $1',
      [id],
    );
    expect(rows).toEqual(left);
  });
});
