import type { Announcement, Occasion } from '#outbound/campaigns/campaign.js';
import { CHANNELS } from '#outbound/messages/message-channel.js';
import {
  sumPending,
  type MessageCounts,
  type MessageRecipient,
  type PendingCounts,
  type UnsentGroup,
} from '#outbound/campaigns/message-recipient.js';
import type { EnteredStore } from '#web/pages/current-user.js';
import { toDateLocale, type Localization, type Translations } from '#translations/translations.js';
import { describeReason, describeRule, formatSent } from './message-views.js';

/**
 * How far the sending of an announcement is.
 * @property waiting until when all that is left waits; null: something is being sent
 * @property waits why some messages wait, and until when
 */
export type ProgressView = {
  waiting: string | null;
  text: string;
  share: number;
  waits: string[];
};

/** What became of the messages of an announcement. @property reasons why some were not sent */
export type ResultsView = { channels: { label: string; value: string }[]; reasons: string[] };

export type OccasionLine = { customer: string; path: string | null; when: string; channel: string };

export function describeTime(
  { state, sendAt }: Pick<Announcement, 'state' | 'sendAt'>,
  minute: (time: Date) => string,
  t: Translations['messagePages']['detail'],
): string {
  if (sendAt === null || state === 'cancelled') return '';
  const when = minute(sendAt);
  return state === 'scheduled' ? t.sendsAt({ when }) : t.sentAt({ when });
}

/** Asks whether an announcement shall be cancelled, or a draft discarded. */
export function askAboutCancelling(
  { state }: Pick<Announcement, 'state'>,
  t: Translations['messagePages']['detail'],
): Record<'question' | 'text' | 'yes' | 'no', string> {
  const [question, yes] =
    state === 'draft' ? [t.askDiscard, t.discardYes] : [t.askCancel, t.cancelYes];
  const text = state === 'sending' ? t.askStopText : t.askCancelText;
  return { question, text, yes, no: t.cancelNo };
}

export function countPeople({ queued, sent, failed, skipped }: MessageCounts): number {
  return queued + sent + failed + skipped;
}

/** Says what a rule does, and what it has sent. */
export function describeRuleOutcome(
  occasion: Pick<Occasion, 'kind' | 'threshold'>,
  counts: MessageCounts,
  localization: Localization,
): string {
  const { sent: label } = localization.t.messagePages.rules.columns;
  const sent = formatSent({ ...counts, people: countPeople(counts) }, localization);
  return [describeRule(occasion, localization), sent && `${label}: ${sent}`]
    .filter(Boolean)
    .join(' · ');
}

export function toProgressView(
  counts: MessageCounts,
  unsent: readonly UnsentGroup[],
  minute: (time: Date) => string,
  { t: { messagePages } }: Localization,
): ProgressView {
  const { progress: t, reasons } = messagePages;
  // Those whom no channel reaches are no part of what there is to do.
  const people = countPeople(counts) - counts.skipped;
  const done = people - counts.queued;
  const queued = unsent.filter(({ state }) => state === 'queued');
  const dueAt = queued.map((group) => group.dueAt);
  const isWaiting = dueAt.length > 0 && dueAt.every((time) => time !== null);
  const [first] = dueAt.filter((time) => time !== null).sort((a, b) => +a - +b);
  return {
    waiting: isWaiting && first ? t.waiting({ when: minute(first) }) : null,
    text: people === 0 ? t.begins : t.doneOf({ done, people }),
    share: people === 0 ? 0 : done / people,
    waits: unsent.flatMap(({ count, reason, isRetry, dueAt }) => {
      if (dueAt === null) return [];
      const wait = { people: count, when: minute(dueAt) };
      if (reason !== null) return [t.limited({ ...wait, reason: reasons[reason] })];
      return [isRetry ? t.retried(wait) : t.quiet(wait)];
    }),
  };
}

export function toResultsView(
  announcement: Pick<Announcement, 'kind' | 'channels'>,
  { sentBy }: MessageCounts,
  pending: PendingCounts | undefined,
  unsent: readonly UnsentGroup[],
  localization: Localization,
): ResultsView {
  const { messagePages: t } = localization.t;
  const numbers = new Intl.NumberFormat(localization.locale);
  const reasons = unsent.flatMap(({ state, reason, count: people }) =>
    reason === null || state === 'queued'
      ? []
      : [{ reason: describeReason(reason, announcement, localization), people }],
  );
  const pendingCount = sumPending(pending);
  if (pendingCount > 0) reasons.unshift({ reason: t.reasons.pending, people: pendingCount });
  return {
    channels: CHANNELS.flatMap((channel) => {
      const count = sentBy[channel] - (pending?.[channel] ?? 0);
      return count > 0 ? [{ label: t.channels[channel], value: numbers.format(count) }] : [];
    }),
    reasons: reasons.map((line) => t.reach.reason(line)),
  };
}

export function toOccasionLine(
  {
    customerId,
    customerName,
    at,
    channel,
  }: Pick<MessageRecipient, 'customerId' | 'customerName' | 'channel'> & { at: Date },
  { id }: EnteredStore,
  minute: (time: Date) => string,
  { t: { messagePages: t } }: Localization,
): OccasionLine {
  return {
    customer: customerName ?? t.recipients.former,
    path: customerName === null ? null : `/app/stores/${id}/customers/${customerId}`,
    when: minute(at),
    channel: channel === null ? t.reach.unreached : t.channels[channel],
  };
}

/** @param byDay only days with somebody, as YYYY-MM-DD */
export function toDays(
  byDay: readonly { day: string; people: number }[],
  { locale }: Localization,
): { day: string; people: string; share: number }[] {
  const numbers = new Intl.NumberFormat(locale);
  const days = new Intl.DateTimeFormat(toDateLocale(locale), {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  });
  const max = Math.max(1, ...byDay.map(({ people }) => people));
  return byDay.map(({ day, people }) => ({
    day: days.format(new Date(`${day}T00:00:00Z`)),
    people: numbers.format(people),
    share: people / max,
  }));
}
