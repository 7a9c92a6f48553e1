/**
 * - wallet: on the pass in Apple Wallet or Google Wallet, as a notification
 * - web_push: as a notification of the browser in which the card was opened
 */
export const CHANNELS = ['wallet', 'web_push', 'email', 'sms'] as const;
export type HolderChannel = (typeof CHANNELS)[number];

/** Tells whether a value is the name of a channel. */
export function isChannel(value: unknown): value is HolderChannel {
  return CHANNELS.some((channel) => channel === value);
}

/** Why a channel does not reach somebody. */
export const UNREACHED_REASONS = [
  'no_card',
  'no_pass',
  'no_browser',
  'no_email',
  'no_phone',
  'no_consent',
  'stopped',
  'not_set_up',
] as const;
export type UnreachedReason = (typeof UNREACHED_REASONS)[number];

/**
 * Why a message was not sent, waits to be sent, or has no notification.
 * - country: the store sends no SMS to the country of the number, or it is a kind of number that gets none
 * - weekly_limit: the customer got as many messages in seven days as the store allows
 * - address_limit: the address or number got as many messages in a day as the service allows
 * - email_limit, sms_limit: the store sent as many e-mails or SMS in a day as it may
 * - merged: the customer was merged into another one, who gets it
 * - past: what the message is about is over, such as a reward that was redeemed meanwhile
 * - refused: by the server of the channel
 * - unknown: a process ended while the message was handed over, and it is not sent a second time
 * - silent: it is on the pass, but without a notification, as Google shows three in 24 hours
 */
export const MESSAGE_REASONS = [
  ...UNREACHED_REASONS,
  'country',
  'weekly_limit',
  'address_limit',
  'email_limit',
  'sms_limit',
  'merged',
  'past',
  'erased',
  'refused',
  'unknown',
  'silent',
] as const;
export type MessageReason = (typeof MESSAGE_REASONS)[number];

/** What decides by which channels a customer can be reached. */
export type Reachability = {
  hasCard: boolean;
  hasPass: boolean;
  hasBrowser: boolean;
  hasEmail: boolean;
  hasPhone: boolean;
  marketingConsent: boolean;
  smsConsent: boolean;
  /** Whether they stopped messages on one of their cards. */
  hasStopped: boolean;
};

/** Whether the operator has set up a mail server and an SMS provider. */
export type SetUp = { email: boolean; sms: boolean };

export type ChannelChoice =
  | { channel: HolderChannel; reasons: [] }
  | { channel: null; reasons: { channel: HolderChannel; reason: UnreachedReason }[] };

/** Chooses the first channel that reaches a customer. @param channels in the order of preference */
export function chooseChannel(
  person: Reachability,
  channels: readonly HolderChannel[],
  setUp: SetUp,
): ChannelChoice {
  const reasons: { channel: HolderChannel; reason: UnreachedReason }[] = [];
  for (const channel of channels) {
    const reason = findUnreachedReason(person, channel, setUp);
    if (reason === undefined) return { channel, reasons: [] };
    reasons.push({ channel, reason });
  }
  return { channel: null, reasons };
}

function findUnreachedReason(
  person: Reachability,
  channel: HolderChannel,
  setUp: SetUp,
): UnreachedReason | undefined {
  // Every message leads to the page of a card, where it can be stopped.
  if (!person.hasCard) return 'no_card';
  if (person.hasStopped) return 'stopped';
  switch (channel) {
    case 'wallet':
      return person.hasPass ? undefined : 'no_pass';
    case 'web_push':
      return person.hasBrowser ? undefined : 'no_browser';
    case 'email':
      if (!setUp.email) return 'not_set_up';
      if (!person.hasEmail) return 'no_email';
      return person.marketingConsent ? undefined : 'no_consent';
    case 'sms':
      if (!setUp.sms) return 'not_set_up';
      if (!person.hasPhone) return 'no_phone';
      return person.smsConsent ? undefined : 'no_consent';
  }
}

/** A number of people whom the same decides about. */
export type ReachGroup = { people: number; person: Reachability };

/** How many people a message reaches, by which channels, and why not the others. */
export type Reach = {
  people: number;
  reached: number;
  byChannel: Record<HolderChannel, number>;
  reasons: { channel: HolderChannel; reason: UnreachedReason; people: number }[];
};

export function countReach(
  groups: readonly ReachGroup[],
  channels: readonly HolderChannel[],
  setUp: SetUp,
): Reach {
  const byChannel = { wallet: 0, web_push: 0, email: 0, sms: 0 };
  const reasons = new Map<string, Reach['reasons'][number]>();
  let [people, reached] = [0, 0];
  for (const group of groups) {
    people += group.people;
    const choice = chooseChannel(group.person, channels, setUp);
    if (choice.channel !== null) {
      reached += group.people;
      byChannel[choice.channel] += group.people;
    }
    for (const { channel, reason } of choice.reasons) {
      const key = `${channel} ${reason}`;
      const before = reasons.get(key)?.people ?? 0;
      reasons.set(key, { channel, reason, people: before + group.people });
    }
  }
  const places = (one: { channel: HolderChannel }) => channels.indexOf(one.channel);
  return {
    people,
    reached,
    byChannel,
    reasons: [...reasons.values()].sort((a, b) => places(a) - places(b) || b.people - a.people),
  };
}
