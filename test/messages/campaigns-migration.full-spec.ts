import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import type { MessageRuleJson } from '#outbound/campaigns/message-rule.dto.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { migrate } from '#platform/database/migrate.js';
import { Baseline } from '../../apps/schema/0001-baseline.js';
import { migrations } from '../../apps/schema/migrations.js';
import { createTestDatabase, testConfig } from '../support/database/database.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;
/** The first store and the first customers of a database. */
const STORE = 1;
const [FIRST, SECOND, THIRD] = [1, 2, 3];

/**
 * Announcements and rules as the build before stored them. Announcement 3 is addressed to the first customer, and then the
 * second one is next; rule 3 has the same id. Everything else is over, or due in an hour
 * or once quiet hours end.
 */
const ROWS = `
  insert into announcements (id, account_id, state, title, text, channels, audience, send_at, actor, created_at,
    updated_at, started_at, finished_at, last_customer_id, is_addressed, counts, due_at)
  select id, ${STORE}, state, 'Announcement ' || id, 'Text', '{email,wallet}',
    jsonb_build_object('cardId', null, 'minStamps', null, 'birthdayMonth', null, 'inactiveSince', null), send_at,
    case when send_at is not null then '{"type": "user", "id": 1}'::jsonb end, '2026-01-01', '2026-01-02',
    case when state in ('sending', 'sent') then send_at end, case when state in ('sent', 'cancelled') then send_at end,
    case id when 3 then ${FIRST} else 0 end, state = 'sent',
    case state when 'sent' then '{"queued": 0, "sent": 7, "failed": 1, "skipped": 2,
      "sentBy": {"wallet": 0, "web_push": 0, "email": 7, "sms": 0}}'::jsonb end,
    case when state in ('scheduled', 'sending') then now() + interval '1 hour' end
  from (values (1, 'draft', null::timestamptz), (2, 'scheduled', now() + interval '1 hour'), (3, 'sending', '2026-01-03'),
    (4, 'sent', '2026-01-03'), (5, 'cancelled', '2026-01-03')) a (id, state, send_at);
  insert into message_rules (id, account_id, kind, threshold, card_id, title, text, channels, enabled, created_at,
    updated_at, deleted_at, checked_seq, checked_until, checked_tie, next_check_at)
  select id, ${STORE}, kind, threshold, null, 'Rule ' || id, 'Text', '{email}', enabled, '2026-01-01', '2026-01-02',
    deleted_at, 5, now() - interval '1 day', 4, case when enabled then now() + interval '1 hour' end
  from (values (3, 'inactive', 60, true, null::timestamptz), (7, 'birthday', null, false, null),
    (8, 'stamps_away', 1, false, '2026-01-03')) r (id, kind, threshold, enabled, deleted_at);
  insert into customer_messages (account_id, announcement_id, rule_id, occasion, customer_id, title, text, state, channel,
    created_at, due_at, finished_at)
  values (${STORE}, 3, null, null, ${FIRST}, null, null, 'queued', 'email', now(), now() + interval '1 hour', null),
    (${STORE}, null, 3, 'a', ${FIRST}, 'Rule 3', 'Text', 'sent', 'email', now(), null, now()),
    (${STORE}, null, 3, '${randomUUID()}', ${SECOND}, 'Rule 3', 'Text', 'queued', 'email', now(), now() + interval '1 hour', null);
  select setval('announcements_id', 5), setval('message_rules_id', 8)`;

let mails: MailServer;
let service: LocalService;
let store: Client;
let migrated: string[];

beforeAll(async () => {
  mails = await MailServer.start();
  const database = await createTestDatabase({ isEmpty: true });
  const config = testConfig(database.url, { DATABASE_MIGRATION_URL: database.ownerUrl });
  await migrate(config, [Baseline]);
  await database.query(ROWS);
  migrated = await migrate(config, migrations);
  service = await startService(
    { SMTP_URL: mails.url, MAIL_FROM: 'Inkpad <inkpad@shop.example>' },
    database,
  );
  store = await service.newStore();
}, SLOW);
afterAll(async () => {
  await service.stop();
  await mails.goAway();
}, SLOW);

/** Creates the customers to whom the messages are. The end of quiet hours makes what is queued due. */
async function addCustomers(): Promise<void> {
  expect(store.accountId).toBe(STORE);
  const quiet = { quiet_from: null, quiet_to: null };
  expect((await store.send('PATCH', `${store.store}/message_settings`, quiet)).status).toBe(200);
  const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
    card: { name: 'Coffee', stamps_required: 3 },
  });
  for (const id of [FIRST, SECOND, THIRD]) {
    const customer = { first_name: 'Anna', email: `${id}@old.example`, marketing_consent: true };
    const { body } = await store.post<{ id: number }>(`${store.store}/customers`, {
      customer,
      card_id: card.id,
    });
    expect(body.id).toBe(id);
  }
}

const readAnnouncement = async (id: number) =>
  (await store.get<AnnouncementJson>(`${store.store}/announcements/${id}`)).body;
const readRule = async (id: number) =>
  (await store.get<MessageRuleJson>(`${store.store}/message_rules/${id}`)).body;

describe('campaigns of the build before', () => {
  it('keep their ids, states and counts', async () => {
    expect(migrated).toContain('Campaigns0000000000002');
    const announcements = await store.get<AnnouncementJson[]>(`${store.store}/announcements`);
    expect(
      announcements.body.map(({ id, title, state, counts }) => [id, title, state, counts.people]),
    ).toEqual([
      [5, 'Announcement 5', 'cancelled', 0],
      [4, 'Announcement 4', 'sent', 10],
      [3, 'Announcement 3', 'sending', 1],
      [2, 'Announcement 2', 'scheduled', 0],
      [1, 'Announcement 1', 'draft', 0],
    ]);
    const rules = await store.get<MessageRuleJson[]>(`${store.store}/message_rules`);
    expect(
      rules.body.map(({ id, title, kind, threshold, enabled, counts }) => [
        [id, title, kind, threshold, enabled],
        [counts.sent, counts.queued],
      ]),
    ).toEqual([
      [
        [3, 'Rule 3', 'inactive', 60, true],
        [1, 1],
      ],
      [
        [7, 'Rule 7', 'birthday', null, false],
        [0, 0],
      ],
    ]);
    expect((await store.get(`${store.store}/message_rules/8`)).status).toBe(404);
    const { rows } = await service.database.query(
      `select state, checked_seq::int, checked_tie::int, due_at > now() as is_due_later from campaigns
       where kind = 'rule' order by id`,
    );
    expect(rows).toEqual([
      { state: 'enabled', checked_seq: 5, checked_tie: 4, is_due_later: true },
      { state: 'disabled', checked_seq: 5, checked_tie: 4, is_due_later: null },
      { state: 'deleted', checked_seq: 5, checked_tie: 4, is_due_later: null },
    ]);
  });

  it(
    'are sent to the end',
    async () => {
      await addCustomers();
      await startDispatcher(service);
      await service.database.query(
        `update campaigns set due_at = now() where kind = 'announcement' and id = 3`,
      );
      const sent = await eventually(
        () => readAnnouncement(3),
        ({ state }) => state === 'sent',
      );
      expect(sent.counts).toMatchObject({ people: 3, sent: 3 });
      expect(mails.received.map(({ to }) => to).sort()).toEqual(
        [FIRST, SECOND, THIRD].map((id) => `${id}@old.example`),
      );
      // It is about a visit that is none of the latest.
      const rule = await eventually(
        () => readRule(3),
        ({ counts }) => counts.queued === 0,
      );
      expect(rule).toMatchObject({ enabled: true, counts: { sent: 1, skipped: 1 } });
      const recipients = await store.get<MessageRecipientJson[]>(
        `${store.store}/message_rules/3/recipients`,
      );
      expect(recipients.body.map(({ rule_id: rule, state }) => [rule, state])).toEqual([
        [3, 'skipped'],
        [3, 'sent'],
      ]);
    },
    SLOW,
  );

  it('have ids that no later one gets', async () => {
    const content = { title: 'New', text: 'Text' };
    const announcement = await store.post<AnnouncementJson>(
      `${store.store}/announcements`,
      content,
    );
    const rule = await store.post<MessageRuleJson>(`${store.store}/message_rules`, {
      ...content,
      kind: 'birthday',
    });
    expect([announcement.status, rule.status]).toEqual([201, 201]);
    expect(announcement.body.id).toBeGreaterThan(8);
    expect(rule.body.id).toBeGreaterThan(announcement.body.id);
  });
});
