import { toSingleLine } from '#outbound/messages/card-message-texts.js';
import type { Mail } from '#outbound/messages/mail.js';
import type { Localization } from '#translations/translations.js';

/** Writes the e-mail with a link. Anybody can enter an address, so the recipient may not have asked for it. */
export function createResetMail(
  { name, email }: { name: string; email: string },
  link: string,
  { t: { signIn } }: Localization,
): Mail {
  const { mails: t } = signIn;
  return {
    to: email,
    subject: t.resetSubject,
    text: `${t.hello({ name: toSingleLine(name) })}\n\n${t.reset({ link })}\n`,
  };
}
