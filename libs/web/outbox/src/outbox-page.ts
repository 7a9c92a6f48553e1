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
  const handedOver = `Given to ${server} on ${finishedAt ? time(finishedAt) : ''}.`;
  if (arrival === null) return `${handedOver} Whether it arrived is not known here.`;
  if (arrival.arrived) return `${handedOver} It has arrived.`;
  const why = arrival.code === null ? '' : ` (${arrival.code})`;
  return `${handedOver} It could not be delivered${why}. Please check the customer’s number.`;
}

/** Explains the state of a message in plain words; details for operators are in the log. */
export function explainState(entry: OutboxEntry, time: (at: Date) => string): string {
  const { state, dueAt, attempts, reason } = entry;
  switch (state) {
    case 'sent':
      return describeSent(entry, time);
    case 'queued':
      if (reason === null || dueAt === null) return 'It is sent within moments.';
      return `It could not be sent (${reason}), ${attempts} ${attempts === 1 ? 'time' : 'times'} so far. It is tried again on its own, until a day has passed.`;
    case 'held':
      return `Nothing was sent, because ${reason ?? ''}. As soon as that has changed, you can send it from here.`;
    case 'failed':
      return `It could not be sent (${reason ?? ''}), and is not tried again on its own. Please check the customer’s address.`;
    case 'dropped':
      return reason === 'erased'
        ? 'Nothing was sent, because the customer was erased.'
        : `Nothing was sent: ${reason ?? ''}. Once the customer has an address, it can be sent.`;
  }
}
