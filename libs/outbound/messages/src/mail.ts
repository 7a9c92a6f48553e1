/** An e-mail to one person. */
export type Mail = {
  to: string;
  subject: string;
  text: string;
  /** The same text for whoever shows HTML. */
  html?: string;
  /** Whose name stands before the sender's address, in place of that of MAIL_FROM. */
  fromName?: string;
};

export type MailOutcome =
  | { kind: 'sent' }
  /** The server does not know the recipient, and would not at another attempt either. */
  | { kind: 'refused'; error: string }
  | { kind: 'failed'; error: string };

const MINUTE = 60;
const WAIT_SECONDS = [5, 30, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE];
const LAST_WAIT_SECONDS = 60 * MINUTE;
/** How long a mail is of use, unless it says otherwise. */
export const GIVE_UP_SECONDS = 24 * 60 * MINUTE;

/**
 * When to try again to send a mail that could not be sent.
 * @param attempts made so far, including this one
 * @returns nothing when the mail would then be too old to be of use
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
