import { ADDRESS_LINK_HOURS, type AddressChange, type AddressLink } from '#identity/links.js';
import { toSingleLine } from '#outbound/messages/card-message-texts.js';
import type { Mail } from '#outbound/messages/mail.js';
import type { Localization } from '#translations/translations.js';

/** Writes the e-mail to the new address. Anybody can enter one, so the recipient may not have asked for it. */
export function createAddressMail(
  { name, email, token, isTaken }: AddressLink,
  publicUrl: string,
  { t: { signIn } }: Localization,
): Mail {
  const { mails: t } = signIn;
  const link = `${publicUrl}/app/account/address?token=${token}`;
  const [hello, body] = isTaken
    ? [t.takenHello, t.taken({ url: `${publicUrl}/app` })]
    : [t.hello({ name: toSingleLine(name) }), t.address({ link, hours: ADDRESS_LINK_HOURS })];
  return { to: email, subject: t.addressSubject, text: `${hello}\n\n${body}\n` };
}

/** Writes the e-mail to the former address. */
export function createAddressChangedMail(
  { name, former, email }: AddressChange,
  { t: { signIn } }: Localization,
): Mail {
  const { mails: t } = signIn;
  const text = `${t.hello({ name: toSingleLine(name) })}\n\n${t.changed({ email })}\n`;
  return { to: former, subject: t.changedSubject, text };
}
