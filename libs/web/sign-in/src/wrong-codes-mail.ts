import type { WrongCodes } from '#identity/second-factor.js';
import { toSingleLine } from '#messages/card-message-texts.js';
import type { Mail } from '#messages/mail.js';

/** Warns a user that somebody knows their password and has entered wrong codes. */
export function createWrongCodesMail(
  { name, email, failures, isLocked }: WrongCodes,
  publicUrl: string,
): Mail {
  const outcome = isLocked
    ? `Your account no longer accepts codes of your app. To sign in, enter one of your recovery codes, or set a new password:`
    : `If it was not you, somebody knows your password. Set a new one:`;
  return {
    to: email,
    subject: 'Wrong codes for your Inkpad account',
    text: `Hello ${toSingleLine(name)},

somebody has entered your password and then ${failures} wrong codes.

${outcome}

${publicUrl}/app/password/forgot
`,
  };
}
