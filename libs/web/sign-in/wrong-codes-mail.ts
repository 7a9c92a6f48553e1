import type { WrongCodes } from '#identity/second-factor.js';
import { toSingleLine } from '#outbound/messages/card-message-texts.js';
import type { Mail } from '#outbound/messages/mail.js';
import type { Localization } from '#translations/translations.js';

/** Warns a user that somebody knows their password and has entered wrong codes. */
export function createWrongCodesMail(
  { name, email, failures, isLocked }: WrongCodes,
  publicUrl: string,
  { t: { signIn } }: Localization,
): Mail {
  const { mails: t } = signIn;
  const link = `${publicUrl}/app/password/forgot`;
  const paragraphs = [
    t.hello({ name: toSingleLine(name) }),
    t.wrongCodes({ count: failures }),
    isLocked ? t.wrongCodesLocked({ link }) : t.wrongCodesOpen({ link }),
  ];
  return { to: email, subject: t.wrongCodesSubject, text: `${paragraphs.join('\n\n')}\n` };
}
