import { judgeSmsNumber } from './sms-destination.js';

/**
 * - wallet: on the pass in Apple Wallet or Google Wallet, as a notification
 * - web_push: as a notification of the browser in which the card was opened
 */
export const CHANNELS = ['wallet', 'web_push', 'email', 'sms'] as const;
export type HolderChannel = (typeof CHANNELS)[number];

/** A channel that needs an address. */
export type MessageChannel = 'email' | 'sms';

/** Tells whether a value is the name of a channel. */
export function isChannel(value: unknown): value is HolderChannel {
  return CHANNELS.some((channel) => channel === value);
}

/**
 * Why a channel does not reach somebody.
 * - unconfirmed: they agreed, and have not confirmed it yet on the page of the link that went to the address or number
 * - bounced: an e-mail to the address came back
 * - country: the store sends no SMS to the country of the number, or it is a kind of number that gets none
 */
export const UNREACHED_REASONS = [
  'no_card',
  'no_pass',
  'no_browser',
  'no_email',
  'no_phone',
  'no_consent',
  'unconfirmed',
  'stopped',
  'bounced',
  'not_set_up',
  'country',
] as const;
export type UnreachedReason = (typeof UNREACHED_REASONS)[number];

/**
 * Why a message was not sent, waits to be sent, or has no notification.
 * - weekly_limit: the customer got as many messages in seven days as the store allows
 * - address_limit: the address or number got as many messages in a day as the service allows
 * - email_limit, sms_limit: the store sent as many e-mails or SMS in a day as it may
 * - merged: the customer was merged into another one, who gets it
 * - past: what the message is about is over, such as a reward that was redeemed meanwhile
 * - refused: by the server of the channel
 * - unknown: a process ended while the message was handed over, and it is not sent a second time
 * - silent: it is on the pass, but without a notification, as Google shows three in 24 hours
 * - cancelled: the announcement was cancelled before, or the rule was turned off
 */
export const MESSAGE_REASONS = [
  ...UNREACHED_REASONS,
  'weekly_limit',
  'address_limit',
  'email_limit',
  'sms_limit',
  'merged',
  'past',
  'refused',
  'unknown',
  'silent',
  'cancelled',
] as const;
export type MessageReason = (typeof MESSAGE_REASONS)[number];

/** What decides by which channels a customer can be reached. */
export type Reachability = {
  hasCard: boolean;
  hasPass: boolean;
  hasBrowser: boolean;
  hasEmail: boolean;
  /** Whether an e-mail to the address came back. */
  hasBounced: boolean;
  hasPhone: boolean;
  /** Whether the store sends no SMS to the number; left out: that is judged when the message is sent. */
  isPhoneAbroad?: boolean;
  marketingConsent: boolean;
  smsConsent: boolean;
  /** Whether the consent for the channel waits for its confirmation. */
  isEmailUnconfirmed: boolean;
  isPhoneUnconfirmed: boolean;
  /** Whether they stopped messages on one of their cards. */
  hasStopped: boolean;
};

/** Whether the operator has set up a channel: a wallet, a mail server, an SMS provider. Browsers need nothing. */
export type SetUp = Record<HolderChannel, boolean>;

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

/** The reasons by how much they tell: first what somebody has decided, then what could be done, then what the person lacks. */
const TELLING: readonly UnreachedReason[] = [
  'no_card',
  'stopped',
  'bounced',
  'country',
  'unconfirmed',
  'no_consent',
  'no_email',
  'no_phone',
  'no_pass',
  'no_browser',
  'not_set_up',
];

/**
 * Finds the reason that tells most of why no channel reaches somebody: of a person with an e-mail address that they have not
 * agreed to e-mails, rather than that their browser shows no notifications, which is true of nearly everybody.
 */
export function findTellingReason({ reasons }: ChannelChoice): UnreachedReason | undefined {
  return TELLING.find((reason) => reasons.some((entry) => entry.reason === reason));
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
      if (!setUp.wallet) return 'not_set_up';
      return person.hasPass ? undefined : 'no_pass';
    case 'web_push':
      return person.hasBrowser ? undefined : 'no_browser';
    case 'email':
      if (!setUp.email) return 'not_set_up';
      if (!person.hasEmail) return 'no_email';
      if (!person.marketingConsent) return 'no_consent';
      if (person.hasBounced) return 'bounced';
      return person.isEmailUnconfirmed ? 'unconfirmed' : undefined;
    case 'sms':
      if (!setUp.sms) return 'not_set_up';
      if (!person.hasPhone) return 'no_phone';
      if (!person.smsConsent) return 'no_consent';
      if (person.isPhoneAbroad) return 'country';
      return person.isPhoneUnconfirmed ? 'unconfirmed' : undefined;
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
  const places = (entry: { channel: HolderChannel }) => channels.indexOf(entry.channel);
  return {
    people,
    reached,
    byChannel,
    reasons: [...reasons.values()].sort((a, b) => places(a) - places(b) || b.people - a.people),
  };
}

/** The current addresses of a customer. @property hasBounced whether an e-mail to the address came back */
export type Contact = { email: string | null; phone: string | null; hasBounced?: boolean };

/** Why a card link is not sent. A country that the store sends no SMS to stands behind: ISO 3166-1 alpha-2. */
export type UnsentReason =
  | 'erased'
  | 'no_address'
  | 'bounced'
  | 'no_country_code'
  | 'number_without_sms'
  | 'mail_not_set_up'
  | 'sms_not_set_up'
  | 'phone_not_entered'
  | 'too_many_signups'
  | 'too_many_emails'
  | 'too_many_sms'
  | 'too_many_to_address'
  | `country_not_allowed ${string}`;

export type Route =
  | { kind: 'send'; channel: MessageChannel; to: string }
  /** The channel cannot reach the customer now. */
  | { kind: 'hold'; channel: MessageChannel; reason: UnsentReason }
  | { kind: 'drop'; reason: UnsentReason };

/**
 * The channels that are set up.
 * @property smsCountries the countries that the store sends SMS to, ISO 3166-1 alpha-2
 */
export type Channels = Pick<SetUp, MessageChannel> & { smsCountries: readonly string[] };

/**
 * Chooses the channel of a card link: e-mail first.
 * @param refused the channels whose servers do not know the address
 */
export function chooseRoute(
  contact: Contact,
  channels: Channels,
  refused: readonly HolderChannel[] = [],
): Route {
  const routes = (['email', 'sms'] as const)
    .filter((channel) => !refused.includes(channel))
    .map((channel) => routeBy(channel, contact, channels));
  const hasAddress = (route: Route) =>
    route.kind !== 'drop' || !['no_address', 'bounced'].includes(route.reason);
  return (
    routes.find(({ kind }) => kind === 'send') ??
    routes.find(hasAddress) ??
    routes[0] ?? { kind: 'drop', reason: 'no_address' }
  );
}

/** Finds where a message to a customer goes by a channel. SMS go to phones of people in the store's countries only. */
export function routeBy(
  channel: MessageChannel,
  { email, phone, hasBounced = false }: Contact,
  { email: hasMail, sms: hasSms, smsCountries }: Channels,
): Route {
  const to = channel === 'email' ? email : phone;
  if (to === null) return { kind: 'drop', reason: 'no_address' };
  if (channel === 'email') {
    if (hasBounced) return { kind: 'drop', reason: 'bounced' };
    return hasMail
      ? { kind: 'send', channel, to }
      : { kind: 'hold', channel, reason: 'mail_not_set_up' };
  }
  if (!to.startsWith('+')) return { kind: 'drop', reason: 'no_country_code' };
  const destination = judgeSmsNumber(to, smsCountries);
  switch (destination.kind) {
    case 'allowed':
      return hasSms
        ? { kind: 'send', channel, to }
        : { kind: 'hold', channel, reason: 'sms_not_set_up' };
    case 'foreign':
      return { kind: 'hold', channel, reason: `country_not_allowed ${destination.country}` };
    case 'unsuitable':
      return { kind: 'drop', reason: 'number_without_sms' };
  }
}
