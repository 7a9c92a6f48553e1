import { UnavailableError } from '#platform/kernel/errors.js';
import type { AnnouncementState, CampaignKind, Occasion } from '#outbound/campaigns/campaign.js';
import {
  CHANNELS,
  isChannel,
  type HolderChannel,
  type Reach,
} from '#outbound/messages/message-channel.js';
import type { MessageRecipient, RecipientState } from '#outbound/campaigns/message-recipient.js';
import type { Localization } from '#translations/translations.js';
import { takePage } from '#web/pages/page-query.js';
import { buildMessagesPath } from '../outbox/message-tabs.js';

export type Mood = '' | 'good' | 'bad';

/** A number with its name. */
type Figure = { label: string; value: string };

/** The data of the part `message-reach`. */
export type ReachView = {
  title: string;
  about: string;
  figures: Figure[];
  channels: Figure[];
  whyNot: string;
  reasons: string[];
};

/** The data of the part `message-preview`. */
export type PreviewView = {
  store: string;
  title: string;
  text: string;
  /** The whole SMS. */
  sms: string;
  channels: readonly HolderChannel[];
};

type RecipientLine = {
  customer: string;
  /** The page of the customer; null once they are erased. */
  path: string | null;
  channel: string;
  state: string;
  mood: Mood;
  why: string;
  when: string;
};

/** The data of the part `message-recipients`. */
export type RecipientsView = {
  lines: RecipientLine[];
  more: string | null;
  first: string | null;
};

/** A box of a form. */
export type ChannelBox = { name: string; label: string; hint: string };

const STATE_MOODS: Record<RecipientState, Mood> = {
  queued: '',
  sent: 'good',
  failed: 'bad',
  skipped: '',
};

/** Builds the path of the pages of a kind, from the root of the service. */
export function buildCampaignsPath(store: { id: number }, kind: CampaignKind): string {
  return `${buildMessagesPath(store)}/${kind}s`;
}

export function getAnnouncementMood(state: AnnouncementState): Mood {
  if (state === 'sent') return 'good';
  return state === 'cancelled' ? 'bad' : '';
}

/** @param days null: now */
export function toReachView(
  reach: Reach,
  channels: readonly HolderChannel[],
  days: number | null,
  { t: { messagePages: t }, locale }: Localization,
): ReachView {
  const numbers = new Intl.NumberFormat(locale);
  const { people, reached, byChannel, reasons } = reach;
  return {
    title: days === null ? t.reach.title : t.reach.pastTitle({ days }),
    about: days === null ? '' : t.reach.past,
    figures: [
      { label: t.reach.people, value: numbers.format(people) },
      { label: t.reach.reached, value: numbers.format(reached) },
      { label: t.reach.unreached, value: numbers.format(people - reached) },
    ],
    channels: channels.map((channel) => ({
      label: t.channels[channel],
      value: numbers.format(byChannel[channel]),
    })),
    whyNot: t.reach.whyNot,
    reasons: reasons.map((one) =>
      t.reach.reason({
        channel: t.channels[one.channel],
        reason: t.reasons[one.reason],
        people: one.people,
      }),
    ),
  };
}

/** @param customers the path of the list of customers @param time formats a time */
function toRecipientLine(
  one: MessageRecipient,
  customers: string,
  time: (at: Date) => string,
  { t: { messagePages: t, outbox } }: Localization,
): RecipientLine {
  const { customerName, channel, state, arrival, reason, finishedAt, dueAt, createdAt } = one;
  return {
    customer: customerName ?? t.recipients.erased,
    path: customerName === null ? null : `${customers}/${one.customerId}`,
    channel: channel === null ? '' : t.channels[channel],
    state: arrival === null ? t.recipients.states[state] : outbox.states[arrival],
    mood: arrival === 'undelivered' ? 'bad' : STATE_MOODS[state],
    why: reason === null ? '' : t.reasons[reason],
    when: time(finishedAt ?? dueAt ?? createdAt),
  };
}

/** How many recipients a page shows. */
export const RECIPIENT_PAGE_SIZE = 50;

/**
 * Creates a page of recipients, one of which may be beyond it.
 * @param place.base the path of the page @param place.key what the list is ordered by
 */
export function createRecipientsView(
  recipients: readonly MessageRecipient[],
  place: {
    base: string;
    accountId: number;
    after: number[] | null;
    key: 'customerId' | 'id';
    time: (at: Date) => string;
  },
  localization: Localization,
): RecipientsView {
  const { base, accountId, after, key, time } = place;
  const { page, last } = takePage(recipients, RECIPIENT_PAGE_SIZE);
  const customers = `/app/stores/${accountId}/customers`;
  return {
    lines: page.map((one) => toRecipientLine(one, customers, time, localization)),
    more: last ? `${base}?after=${last[key]}#recipients` : null,
    first: after === null ? null : `${base}#recipients`,
  };
}

export function formatSent(
  { sent, people }: { sent: number; people: number },
  { t: { messagePages: t } }: Localization,
): string {
  if (people === 0) return '';
  return t.announcements.sentOf({ sent, people });
}

/** Says what a rule does, such as "1 stamp away from a reward". */
export function describeRule(
  { kind, threshold }: Pick<Occasion, 'kind' | 'threshold'>,
  { t }: Localization,
): string {
  const text = t.messagePages.rules.describe[kind];
  return typeof text === 'string' ? text : text({ count: threshold ?? 0 });
}

/** Lists a box for each channel, those that are ticked first, in the order of preference. */
export function listChannelBoxes(
  chosen: readonly string[],
  { t: { messagePages: t } }: Localization,
): ChannelBox[] {
  const order = [...new Set([...chosen.filter(isChannel), ...CHANNELS])];
  return order.map((channel) => ({
    name: `channels:${channel}`,
    label: t.channels[channel],
    hint: t.channelHints[channel],
  }));
}

/** Awaits a count that a page only shows. @returns null while too many counts of the store wait */
export async function skipWhenBusy<R>(count: Promise<R>): Promise<R | null> {
  try {
    return await count;
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}
