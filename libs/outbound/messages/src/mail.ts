/** An e-mail to one person. */
export type Mail = {
  to: string;
  subject: string;
  text: string;
  /** The same text as HTML. */
  html?: string;
  /** The sender's name, in place of that in MAIL_FROM. */
  fromName?: string;
};

export type MailOutcome =
  | { kind: 'sent' }
  /** The server does not know the recipient, so a retry would not help. */
  | { kind: 'refused'; error: string }
  | { kind: 'failed'; error: string };

const MINUTE = 60;
const WAIT_SECONDS = [5, 30, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE];
const LAST_WAIT_SECONDS = 60 * MINUTE;
/** How long an e-mail is retried by default. */
export const GIVE_UP_SECONDS = 24 * 60 * MINUTE;

/**
 * Finds the time of the next attempt to send an e-mail.
 * @param attempts made so far, including this one
 * @returns undefined when the e-mail would be too old by then
 */
export function findNextMailAttempt(
  attempts: number,
  createdAt: Date,
  now: Date,
  giveUpAt = new Date(createdAt.getTime() + GIVE_UP_SECONDS * 1000),
): Date | undefined {
  const seconds = WAIT_SECONDS[attempts - 1] ?? LAST_WAIT_SECONDS;
  const next = new Date(now.getTime() + seconds * 1000);
  return next > giveUpAt ? undefined : next;
}
