import { INVITATION_DAYS } from '#identity/links.js';
import type { Role } from '#identity/roles.js';
import { toSingleLine } from '#outbound/messages/card-message-texts.js';
import type { Mail } from '#outbound/messages/mail.js';
import type { Localization } from '#translations/translations.js';

type Invitation = {
  email: string;
  secret: string;
  role: Role;
  store: { name: string };
  inviter: string;
};

/** Writes the e-mail of an invitation. @param localization of the store */
export function createInvitationMail(
  { email, secret, role, store, inviter }: Invitation,
  { publicUrl }: { publicUrl: string },
  { t: { console: texts } }: Localization,
): Mail {
  const { invitationMail: t, roles } = texts;
  const name = toSingleLine(store.name);
  const link = `${publicUrl}/app/invitations/${secret}`;
  const text = t.text({
    inviter: toSingleLine(inviter),
    store: name,
    role: roles.inText[role],
    link,
    days: INVITATION_DAYS,
  });
  return { to: email, subject: t.subject({ store: name }), text };
}
