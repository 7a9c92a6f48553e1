import type { RetrySchedule } from '#platform/kernel/retry-schedule.js';

/** An e-mail to one person. */
export type Mail = {
  to: string;
  subject: string;
  text: string;
  /** The same text as HTML. */
  html?: string;
  /** The store in whose name it is sent, in place of the name in MAIL_FROM. */
  fromName?: string;
  /** Where its recipient stops such mails, by a page and by a POST (RFC 8058). */
  unsubscribeUrl?: string;
};

/**
 * A PNG in the HTML, where its address is `cid:` and its name. Mail programs show it at once, while most ask before they
 * load one from elsewhere. Nobody learns when the e-mail is opened, either.
 */
export type MailPicture = { cid: string; png: Buffer };
export type IllustratedMail = Mail & { pictures: MailPicture[] };

export type MailOutcome =
  | { kind: 'sent' }
  /** The server refuses the recipient for good. @property status its enhanced code, such as 5.1.1, if it gave one */
  | { kind: 'refused'; error: string; status?: string }
  /** @property mayHaveArrived the text was sent, and the server did not say what became of it */
  | { kind: 'failed'; error: string; mayHaveArrived?: boolean };

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** How long an e-mail is retried by default. */
export const GIVE_UP_SECONDS = 24 * 60 * 60;

/** How e-mails and SMS are retried until they are given up. */
export const MAIL_RETRIES: RetrySchedule = {
  delaysMs: [
    5 * SECOND_MS,
    30 * SECOND_MS,
    2 * MINUTE_MS,
    10 * MINUTE_MS,
    30 * MINUTE_MS,
    60 * MINUTE_MS,
  ],
  lastRepeats: true,
  maxRequestedMs: 60 * MINUTE_MS,
  isSpread: false,
};
