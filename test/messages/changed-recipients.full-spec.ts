import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { ProcessSession } from '#platform/database/process-session.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { AnnouncementJson } from '#outbound/campaigns/announcement.dto.js';
import { CampaignDispatch } from '#outbound/campaigns/campaign-dispatch.service.js';
import { CampaignMessages } from '#outbound/campaigns/campaign-messages.service.js';
import type { MessageRecipientJson } from '#outbound/campaigns/message-recipient.dto.js';
import { CHANNELS, type HolderChannel } from '#outbound/messages/message-channel.js';
import { MessageDispatch } from '#outbound/messages/message-dispatch.service.js';
import { PassDispatch } from '#outbound/passes/pass-dispatch.service.js';
import { DispatcherModule } from '../../apps/dispatcher/dispatcher.module.js';
import { testConfig } from '../support/database/database.js';
import { appleWorld, type AppleWorld } from '../support/emulators/apple/world.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { startPushService, type PushService } from '../support/emulators/web-push/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

const SLOW = 300_000;
const ORIGIN = 'https://cards.example';

/** What is about to happen to a message when its recipient changes. */
const STEPS = ['addressed', 'handed over', 'recorded'] as const;
type Step = (typeof STEPS)[number];
type Change = 'erased' | 'merged';

let world: AppleWorld;
let pushes: PushService;
let mails: MailServer;
let provider: SmsProvider;
let service: LocalService;
let people = 0;
/** Changes the recipient of the next message that comes to a step. */
let pending: { step: Step; change: () => Promise<void> } | undefined;

async function reach(step: Step): Promise<void> {
  if (pending?.step !== step) return;
  const { change } = pending;
  pending = undefined;
  await change();
}

/** A dispatcher in this process, which pauses between the steps of a message. */
beforeAll(async () => {
  [world, pushes, mails, provider] = await Promise.all([
    appleWorld(),
    startPushService(),
    MailServer.start(),
    SmsProvider.start(),
  ]);
  service = await startService({
    ...world.settings,
    ...provider.settings,
    PUBLIC_URL: ORIGIN,
    WEB_PUSH_ALLOW_INSECURE_ENDPOINTS: 'true',
    SMTP_URL: mails.url,
    MAIL_FROM: 'Inkpad <inkpad@shop.example>',
  });
  const { database, environment } = service;
  const module = DispatcherModule.forRoot(testConfig(database.url, environment));
  const dispatcher = await NestFactory.createApplicationContext(module, { logger: ['error'] });
  await dispatcher.get(ProcessSession, { strict: false }).start('dispatcher');
  const stopping = new AbortController();
  const maintenance = dispatcher.get(EventStore).maintain(stopping.signal);
  const messages = dispatcher.get(CampaignMessages, { strict: false });
  const load = messages.load.bind(messages);
  jest.spyOn(messages, 'load').mockImplementation(async (message) => {
    await reach('addressed');
    const loaded = await load(message);
    return (
      loaded && {
        ...loaded,
        render: async (channel) => {
          const rendered = await loaded.render(channel);
          await reach('handed over');
          return rendered;
        },
        record: async () => {
          await reach('recorded');
          await loaded.record?.();
        },
      }
    );
  });
  const [passes, campaigns] = [dispatcher.get(PassDispatch), dispatcher.get(CampaignDispatch)];
  passes.start();
  campaigns.start();
  service.onStop(async () => {
    stopping.abort();
    const sending = [passes, campaigns, dispatcher.get(MessageDispatch)];
    await Promise.all([maintenance, ...sending.map((part) => part.stop(10_000))]);
    await dispatcher.close();
  });
}, SLOW);
afterAll(async () => {
  jest.restoreAllMocks();
  await service.stop();
  await Promise.all([world.apns.stop(), pushes.stop(), mails.goAway(), provider.stop()]);
}, SLOW);

type Holder = { id: number; email: string; phone: string; uuid: string; appleUrl: string };

async function addHolder(store: Client, cardId: number): Promise<Holder> {
  const number = String(++people).padStart(3, '0');
  const [email, phone] = [`p${number}@people.example`, `+4915112345${number}`];
  const consents = { marketing_consent: true, sms_consent: true };
  const { status, body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Anna', email, phone, ...consents },
    card_id: cardId,
  });
  expect(status).toBe(201);
  const { uuid = '', apple_wallet_url: appleUrl = '' } = body.customer_card ?? {};
  return { id: body.id, email, phone, uuid, appleUrl };
}

async function subscribe({ uuid }: Holder) {
  const html = await (await fetch(`${service.baseUrl}/passes/${uuid}`)).text();
  const [, key = ''] = /data-push-key="([\w-]+)"/.exec(html) ?? [];
  const browser = pushes.subscribe(key);
  const response = await fetch(`${service.baseUrl}/passes/${uuid}/push`, {
    method: 'POST',
    headers: { origin: ORIGIN, 'content-type': 'application/json' },
    body: JSON.stringify(browser.subscription),
  });
  expect(response.status).toBe(204);
  return browser;
}

/** Has a holder ready for messages by a channel. @returns lists what came to each of these people */
async function connect(
  channel: HolderChannel,
  holder: Holder,
  survivor: Holder,
): Promise<() => [number, number]> {
  const countFor = (count: (person: Holder) => number) => (): [number, number] => [
    count(holder),
    count(survivor),
  ];
  switch (channel) {
    case 'wallet': {
      const phone = world.phone(service.baseUrl);
      await phone.add(holder.appleUrl);
      return () => [phone.messages.filter((text) => text.includes('Tuesday')).length, 0];
    }
    case 'web_push': {
      const browser = await subscribe(holder);
      return () => [browser.messages.filter(({ text }) => text.includes('Tuesday')).length, 0];
    }
    case 'email':
      return countFor(({ email }) => mails.received.filter(({ to }) => to === email).length);
    case 'sms':
      return countFor(({ phone }) => provider.to(phone).length);
  }
}

const listRecorded = async (customers: Holder[]) =>
  (await service.history())
    .filter(({ type }) => type === 'CustomerMessaged')
    .map(({ data }) => (data as { customerId: number }).customerId)
    .filter((id) => customers.some((customer) => customer.id === id));

type Outcome = Pick<MessageRecipientJson, 'state' | 'reason'> & {
  /** What came to the holder, and to the one who goes on for them. Null: a phone may have asked for the pass before. */
  came: [number, number] | null;
  recordedBy: 'nobody' | 'survivor';
};
const SKIPPED: Outcome = {
  state: 'skipped',
  reason: 'no_card',
  came: [0, 0],
  recordedBy: 'nobody',
};
const SENT: Outcome = { state: 'sent', reason: null, came: [1, 0], recordedBy: 'survivor' };

/** A pass goes on with its card, and a message by e-mail or SMS to the address of whoever goes on, until it is addressed. */
const OUTCOMES: Record<Change, Record<Step, (isOnPass: boolean) => Outcome>> = {
  erased: {
    addressed: () => SKIPPED,
    'handed over': () => SKIPPED,
    recorded: (isOnPass) => ({ ...SENT, recordedBy: 'nobody', came: isOnPass ? null : [1, 0] }),
  },
  merged: {
    addressed: (isOnPass) => (isOnPass ? SENT : { ...SENT, came: [0, 1] }),
    'handed over': () => SENT,
    recorded: () => SENT,
  },
};

const CASES = CHANNELS.flatMap((channel) =>
  STEPS.flatMap((step) =>
    (['erased', 'merged'] as const).map((change) => ({ channel, step, change })),
  ),
);

it.each(CASES)(
  'a message by $channel whose recipient is $change before it is $step comes once or not at all',
  async ({ channel, step, change }) => {
    const store = await service.newStore({ locale: 'en-DE' });
    const addCard = async () =>
      (await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee' } })).body.id;
    const cardId = await addCard();
    const quiet = { quiet_from: null, quiet_to: null };
    expect((await store.send('PATCH', `${store.store}/message_settings`, quiet)).status).toBe(200);
    const [holder, survivor] = [
      await addHolder(store, cardId),
      await addHolder(store, await addCard()),
    ];
    const listCame = await connect(channel, holder, survivor);
    pending = {
      step,
      change: async () => {
        const customers = `${store.store}/customers`;
        const { status } =
          change === 'erased'
            ? await store.post(`${customers}/${holder.id}/erase`)
            : await store.post(`${customers}/${survivor.id}/merge`, {
                from_customer_id: holder.id,
              });
        expect(status).toBe(change === 'erased' ? 204 : 200);
      },
    };
    const path = `${store.store}/announcements`;
    const { body } = await store.post<AnnouncementJson>(path, {
      title: 'Closed on Monday',
      text: 'We are back on Tuesday.',
      channels: [channel],
      card_id: cardId,
    });
    expect((await store.post(`${path}/${body.id}/send`, {})).status).toBe(200);
    await eventually(
      async () => {
        const text = `select from outgoing_messages where announcement_id = $1 and due_at is null`;
        return (await service.database.query(text, [body.id])).rowCount;
      },
      (count) => count === 1,
    );

    const expected = OUTCOMES[change][step](channel === 'wallet' || channel === 'web_push');
    const [recipient] = (await store.get<MessageRecipientJson[]>(`${path}/${body.id}/recipients`))
      .body;
    expect(recipient).toMatchObject({ state: expected.state, reason: expected.reason });
    expect(pending).toBeUndefined();
    // What is on a pass reaches the phone a moment later.
    await eventually(listCame, (came) => !expected.came || came.join() === expected.came.join());
    const recorded = expected.recordedBy === 'survivor' ? [survivor.id] : [];
    expect(await listRecorded([holder, survivor])).toEqual(recorded);
  },
  SLOW,
);
