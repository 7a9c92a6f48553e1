import type { OutboxEntry, MessagePreview } from '#messages/card-message.js';

/** A message in the list. */
export type OutboxLine = {
  path: string;
  customer: string;
  channel: string;
  at: string;
  state: string;
  /** The colour of the state. */
  mood: '' | 'good' | 'bad';
};

export type OutboxData = { lines: OutboxLine[]; older: string | null; holds: boolean };

export type MessageData = OutboxLine & {
  /** Explains the state, and what to do about it. */
  explanation: string;
  providerId: string | null;
  preview: MessagePreview | null;
  canBeSent: boolean;
  /** The path that the form is sent to. */
  send: string;
  back: string;
  done: boolean;
};

const CHANNELS = { email: 'E-mail', sms: 'SMS' } as const;

const STATES: Record<OutboxEntry['state'], { state: string; mood: OutboxLine['mood'] }> = {
  queued: { state: 'On its way', mood: '' },
  held: { state: 'Not sent yet', mood: '' },
  sent: { state: 'Sent', mood: 'good' },
  failed: { state: 'Failed', mood: 'bad' },
  dropped: { state: 'Not sent', mood: 'bad' },
};

/** Creates a time format. @param timeZone of the store */
export function createTimeFormat(timeZone: string): (at: Date) => string {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    dateStyle: 'medium',
    timeStyle: 'short',
  });
  return (at) => format.format(at);
}

export function toOutboxLine(
  entry: OutboxEntry,
  base: string,
  time: (at: Date) => string,
): OutboxLine {
  return {
    path: `${base}/${entry.id}`,
    customer: entry.customer,
    channel: CHANNELS[entry.channel],
    at: time(entry.requestedAt),
    ...describeState(entry),
  };
}

function describeState({ state, arrival }: OutboxEntry): {
  state: string;
  mood: OutboxLine['mood'];
} {
  if (state !== 'sent' || arrival === null) return STATES[state];
  return arrival.arrived
    ? { state: 'Delivered', mood: 'good' }
    : { state: 'Not delivered', mood: 'bad' };
}

function describeSent(
  { channel, finishedAt, arrival }: OutboxEntry,
  time: (at: Date) => string,
): string {
  const server = channel === 'email' ? 'the mail server' : 'the SMS provider';
  const handedOver = `Handed to ${server} on ${finishedAt ? time(finishedAt) : ''}.`;
  if (arrival === null) return `${handedOver} Inkpad cannot tell whether it arrived.`;
  if (arrival.arrived) return `${handedOver} It has arrived.`;
  const details =
    arrival.code === null ? '' : ` ${describeForAdministrator(`error ${arrival.code}`)}`;
  return `${handedOver} It could not be delivered. Please check the customer’s number.${details}`;
}

/** Explains the state of a message in plain words; details for operators are in the log. */
export function explainState(entry: OutboxEntry, time: (at: Date) => string): string {
  const { state, dueAt, attempts, reason } = entry;
  switch (state) {
    case 'sent':
      return describeSent(entry, time);
    case 'queued':
      if (reason === null || dueAt === null) return 'It will be sent in a moment.';
      return `It could not be sent yet, after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}. Inkpad keeps trying for a day. ${describeForAdministrator(reason)}`;
    case 'held':
      return `Nothing was sent, because ${removeSettingNames(reason ?? '')}. Once that has changed, you can send it here.`;
    case 'failed':
      return `It could not be sent, and Inkpad does not try again. Please check the customer’s address. ${describeForAdministrator(reason ?? '')}`;
    case 'dropped':
      return reason === 'erased'
        ? 'Nothing was sent, because the customer was erased.'
        : `Nothing was sent: ${reason ?? ''}. Once the customer has an address, it can be sent.`;
  }
}

/** Keeps the technical reason apart, which helps the operator and nobody else. */
function describeForAdministrator(reason: string): string {
  return `Details for your administrator: ${reason}.`;
}

/** Removes names of settings, such as "(SMTP_URL)", which mean nothing to a shop. */
function removeSettingNames(reason: string): string {
  return reason.replace(/ \([A-Z][A-Z_]+\)/g, '');
}
