import type { OutboxEntry, MessagePreview } from '#outbound/messages/card-message.js';
import type { Localization } from '#translations/translations.js';
import type { Tabs } from './message-tabs.js';

/** A message in the list. */
export type OutboxLine = {
  path: string;
  customer: string;
  /** The customer within a sentence. */
  recipient: string;
  channel: string;
  at: string;
  state: string;
  /** The colour of the state. */
  mood: '' | 'good' | 'bad';
  /** Why it was not sent, as far as the service has decided that. */
  why: string;
};

export type OutboxData = {
  lines: OutboxLine[];
  older: string | null;
  holds: boolean;
  tabs: Tabs;
};

export type MessageData = OutboxLine & {
  /** Explains the state, and what to do about it. */
  explanation: string;
  providerId: string | null;
  preview: MessagePreview | null;
  canBeSent: boolean;
  /** The path that the form is sent to. */
  send: string;
  flash: string;
};

const MOODS: Record<OutboxEntry['state'], OutboxLine['mood']> = {
  queued: '',
  held: '',
  sent: 'good',
  failed: 'bad',
  dropped: 'bad',
};

export function toOutboxLine(
  entry: OutboxEntry,
  base: string,
  time: (at: Date) => string,
  localization: Localization,
): OutboxLine {
  return {
    path: `${base}/${entry.id}`,
    customer: entry.customer ?? localization.t.messagePages.recipients.former,
    recipient: entry.customer ?? localization.t.outbox.former,
    channel: localization.t.outbox.channels[entry.channel],
    at: time(entry.requestedAt),
    ...describeState(entry, localization),
    why: entry.state === 'held' ? describeReason(entry.reason ?? '', localization) : '',
  };
}

function describeState(
  { state, arrival }: OutboxEntry,
  { t }: Localization,
): Pick<OutboxLine, 'state' | 'mood'> {
  const { states } = t.outbox;
  if (state !== 'sent' || arrival === null) return { state: states[state], mood: MOODS[state] };
  return arrival.arrived
    ? { state: states.delivered, mood: 'good' }
    : { state: states.undelivered, mood: 'bad' };
}

function describeSent(
  { channel, finishedAt, arrival }: OutboxEntry,
  time: (at: Date) => string,
  { t: { outbox: t } }: Localization,
): string {
  const handedOver = t.handedOver[channel]({ time: finishedAt ? time(finishedAt) : '' });
  if (arrival === null) return `${handedOver} ${t.unknownArrival}`;
  if (arrival.arrived) return `${handedOver} ${t.arrived}`;
  const details =
    arrival.code === null
      ? ''
      : ` ${t.forAdministrator({ details: t.errorCode({ code: String(arrival.code) }) })}`;
  return `${handedOver} ${t.notArrived}${details}`;
}

/** Explains the state of a message in plain words; details for operators are in the log. */
export function explainState(
  entry: OutboxEntry,
  time: (at: Date) => string,
  localization: Localization,
): string {
  const { state, dueAt, attempts, reason } = entry;
  const { outbox: t } = localization.t;
  switch (state) {
    case 'sent':
      return describeSent(entry, time, localization);
    case 'queued':
      if (reason === null || dueAt === null) return t.soon;
      return `${t.retrying({ count: attempts })} ${t.forAdministrator({ details: reason })}`;
    case 'held':
      return t.held({ reason: describeReason(reason ?? '', localization) });
    case 'failed':
      return `${t.failed} ${t.forAdministrator({ details: reason ?? '' })}`;
    case 'dropped':
      return reason === 'erased'
        ? t.erased
        : t.dropped({ reason: describeReason(reason ?? '', localization) });
  }
}

/** Says why a message was not sent, in its own words where another version of the service has written them. */
function describeReason(reason: string, { t, locale }: Localization): string {
  const reasons: Partial<typeof t.outbox.reasons> = t.outbox.reasons;
  const [code = '', country = ''] = reason.split(' ');
  const text = reasons[code as keyof typeof reasons];
  if (text === undefined) return reason;
  if (typeof text === 'string') return text;
  return text({
    country: new Intl.DisplayNames(locale, { type: 'region' }).of(country) ?? country,
  });
}
