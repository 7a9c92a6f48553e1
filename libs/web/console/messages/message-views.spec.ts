import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import type { UnreachedReason } from '#outbound/messages/message-channel.js';
import type { MessageRecipient } from '#outbound/campaigns/message-recipient.js';
import {
  createRecipientsView,
  describeReason,
  describeRuleState,
  describeState,
  describeWait,
  toPastReachView,
  toReachView,
} from './message-views.js';

it.each([
  [{ queued: 0, sent: 3, failed: 0, people: 4 }, 'good'],
  [{ queued: 0, sent: 3, failed: 1, people: 4 }, 'warn'],
  [{ queued: 0, sent: 0, failed: 0, people: 4 }, 'warn'],
  [{ queued: 1, sent: 3, failed: 0, people: 4 }, 'warn'],
])(
  'warns when nobody got an announcement, or a message of it failed or waits: %o',
  (counts, mood) => {
    expect(describeState('sent', false, counts, getTranslations('en')).mood).toBe(mood);
  },
);

it('says of an announcement that waits until when it does', () => {
  const minute = (time: Date) => time.toISOString().slice(11, 16);
  const describe = (until?: Date) => describeWait(until, minute, getTranslations('en'));
  expect(describe(new Date('2026-03-02T08:00:00Z'))).toEqual({ state: 'Waits until 08:00' });
  expect(describe()).toEqual({});
});

it.each([
  [
    { reached: 0, people: 3 },
    'Nobody can get this message yet. Not set up on this service: Wallet. Ask whoever runs Inkpad for you.',
  ],
  [{ reached: 1, people: 3 }, ''],
  [{ reached: 0, people: 0 }, ''],
])('says of a rule why it reaches nobody, if there are occasions: %o', (counts, text) => {
  const reach = {
    ...counts,
    customers: counts.people,
    days: 30,
    byChannel: { wallet: counts.reached, web_push: 0, email: 0, sms: 0 },
    reasons: [{ channel: 'wallet', reason: 'not_set_up', people: 3 }] as const,
  };
  const { nobody } = toPastReachView(
    { ...reach, reasons: [...reach.reasons] },
    ['wallet'],
    getTranslations('en'),
  );
  expect(nobody).toBe(text);
});

it.each<[reasons: UnreachedReason[], text: string, isConsentMissing: boolean]>([
  [['no_email', 'no_consent'], 'Nobody with an e-mail address has agreed to e-mails.', true],
  [
    ['no_consent', 'unconfirmed'],
    'Those who agreed have not confirmed it yet on the page of the link.',
    true,
  ],
  [['bounced'], 'The e-mails to those who agreed come back.', false],
  [['stopped'], 'Some have stopped all messages.', false],
])(
  'says of an announcement why e-mails reach nobody, and whether a consent is missing: %o',
  (reasons, text, isConsentMissing) => {
    const reach = {
      people: 2,
      reached: 0,
      byChannel: { wallet: 0, web_push: 0, email: 0, sms: 0 },
      reasons: reasons.map((reason) => ({ channel: 'email' as const, reason, people: 1 })),
    };
    expect(toReachView(reach, ['email'], {}, getTranslations('en'))).toMatchObject({
      nobody: `Nobody can get this message yet. ${text}`,
      lacksConsent: isConsentMissing,
    });
  },
);

it.each([
  [true, null, 'On', 'good'],
  [true, { people: 3, reached: 1 }, 'On', 'good'],
  [true, { people: 0, reached: 0 }, 'On', 'good'],
  [true, { people: 3, reached: 0 }, 'On, nobody reached', 'warn'],
  [false, { people: 3, reached: 0 }, 'Off', ''],
])('warns of a rule that is on and reaches nobody: %s, %o', (isEnabled, reach, state, mood) => {
  expect(describeRuleState(isEnabled, reach, getTranslations('en'))).toEqual({ state, mood });
});

it.each([
  [5, false, true],
  [6, false, false],
  [6, true, true],
])('unfolds %i recipients, with a link of the list followed: %s', (count, isChosen, isOpen) => {
  const recipient: MessageRecipient = {
    id: 1,
    announcementId: 1,
    ruleId: null,
    customerId: 1,
    customerName: 'Anna',
    customerCardId: 1,
    state: 'sent',
    channel: 'email',
    reason: null,
    arrival: null,
    dueAt: null,
    createdAt: new Date(0),
    finishedAt: new Date(0),
  };
  const view = createRecipientsView(
    Array.from({ length: count }, () => recipient),
    {
      base: '/app',
      campaign: { kind: 'announcement', accountId: 1, channels: ['email'] },
      after: null,
      state: null,
      isChosen,
      counts: null,
      time: String,
    },
    getTranslations('en'),
  );
  expect(view.isOpen).toBe(isOpen);
  expect(view.filters.tabs[0]?.path).toBe('/app?state=all#recipients');
});

it.each([
  ['announcement', ['sms', 'email'], 'not_set_up', 'SMS is not set up on this service'],
  ['announcement', ['sms'], 'no_phone', 'no phone number'],
  // Its channels may have changed since.
  ['rule', ['sms'], 'not_set_up', 'this channel is not set up on this service'],
] as const)(
  'names the channel that is not set up, if it is known: %s, %o, %s',
  (kind, channels, reason, text) => {
    expect(describeReason(reason, { kind, channels: [...channels] }, getTranslations('en'))).toBe(
      text,
    );
  },
);
