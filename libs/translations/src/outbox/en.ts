const texts = {
  about: 'The links to their cards that your customers get, by e-mail and SMS.',
  holds: 'Some messages were not sent. Open one to see why, and to send it later.',
  none: 'No messages yet',
  noneWhy: 'They appear here once a customer is sent the link to their card.',
  caption: 'Messages, newest first',
  to: 'To',
  kind: 'Kind',
  requested: 'Requested',
  state: 'State',
  show: 'Show',
  /** Read out after `show`. */
  showOf: (customer: string) => `the message to ${customer}`,
  title: (customer: string) => `Message to ${customer}`,
  requestedOn: (channel: string, time: string) => `${channel}, requested on ${time}`,
  all: 'All messages',
  onItsWay: 'It is on its way.',
  reference: 'Provider reference:',
  send: 'Send now',
  preview: 'Preview',
  noAddress: 'no address',
  subject: 'Subject',
  previewWhy: 'This is how it would be sent now: Inkpad keeps neither the address nor the text.',
  channels: { email: 'E-mail', sms: 'SMS' },
  states: {
    queued: 'On its way',
    held: 'Not sent yet',
    sent: 'Sent',
    failed: 'Failed',
    dropped: 'Not sent',
    delivered: 'Delivered',
    undelivered: 'Not delivered',
  },
  handedOver: {
    email: (time: string) => `Handed to the mail server on ${time}.`,
    sms: (time: string) => `Handed to the SMS provider on ${time}.`,
  },
  unknownArrival: 'Inkpad cannot tell whether it arrived.',
  arrived: 'It has arrived.',
  notArrived: 'It could not be delivered. Please check the customer’s number.',
  soon: 'It will be sent in a moment.',
  retrying: (text: string, count: number) =>
    `It could not be sent yet, after ${text} ${count === 1 ? 'attempt' : 'attempts'}. Inkpad keeps trying for a day.`,
  held: (reason: string) =>
    `Nothing was sent, because ${reason}. Once that has changed, you can send it here.`,
  failed:
    'It could not be sent, and Inkpad does not try again. Please check the customer’s address.',
  erased: 'Nothing was sent, because the customer was erased.',
  dropped: (reason: string) =>
    `Nothing was sent, because ${reason}. Once the customer has an address, it can be sent.`,
  /** @param details in English */
  forAdministrator: (details: string) => `Details for your administrator: ${details}.`,
  errorCode: (code: string) => `error ${code}`,
  /** Reasons by their English text as it is stored, with `{}` for what varies. */
  reasons: {
    'no mail server is set up (SMTP_URL)': 'no mail server is set up',
    'no SMS provider is set up (SMS_URL)': 'no SMS provider is set up',
    'too many people signed up from the same network today, or at this store in all':
      'too many people signed up from the same network today, or at this store in all',
    'no phone number was entered when signing up': 'no phone number was entered when signing up',
    'the store has sent too many SMS': 'the store has sent too many SMS today',
    'the store sends no SMS to {} (Settings, Other countries)': (country: string) =>
      `the store sends no SMS to ${country}; you can add the country in the settings`,
    'too many messages went to this address today': 'too many messages went to this address today',
    'there is no address': 'there is no address',
    'the phone number has no country code': 'the phone number has no country code',
    'the phone number is of a kind that gets no SMS':
      'the phone number is of a kind that gets no SMS',
  },
};

/** Has the shape of the English texts, with other values. */
export type OutboxTexts = Omit<typeof texts, 'reasons'> & {
  reasons: {
    [reason in keyof typeof texts.reasons]: string | ((...values: string[]) => string);
  };
};

export const outbox: OutboxTexts = texts;
