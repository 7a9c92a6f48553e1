import { INVITATION_DAYS } from '#identity/invitation.js';
import type { Role } from '#identity/roles.js';
import { toSingleLine } from '#messages/card-message-texts.js';
import type { Mail } from '#messages/mail.js';
import { ROLE_LABELS } from './role-labels.js';

type Invitation = {
  email: string;
  secret: string;
  role: Role;
  store: { name: string };
  inviter: string;
};

/** Writes the e-mail of an invitation, in English like the console. */
export function createInvitationMail(
  { email, secret, role, store, inviter }: Invitation,
  { publicUrl }: { publicUrl: string },
): Mail {
  const name = toSingleLine(store.name);
  const lines = [
    `${toSingleLine(inviter)} invites you to ${name} on Inkpad, as ${ROLE_LABELS[role].text.toLowerCase()}.`,
    '',
    'Open this link to accept:',
    `${publicUrl}/app/invitations/${secret}`,
    '',
    `It works once, and for ${INVITATION_DAYS} days. If you do not know what this is about, you need not do anything.`,
  ];
  return { to: email, subject: `Your invitation to ${name}`, text: `${lines.join('\n')}\n` };
}
