import {
  ADDRESS_LINK_HOURS,
  type AddressChange,
  type AddressLink,
} from '#identity/address-link.js';
import { toSingleLine } from '#messages/card-message-texts.js';
import type { Mail } from '#messages/mail.js';

/** Writes the e-mail to the new address. */
export function createAddressMail(
  { name, email, token, isTaken }: AddressLink,
  publicUrl: string,
): Mail {
  const subject = 'Your e-mail address for Inkpad';
  if (isTaken) {
    return {
      to: email,
      subject,
      text: `Hello,

somebody, most likely you, wants to use this address for another account. It already has an account, so nothing has changed.
You can sign in with it at ${publicUrl}/app, or set a new password there.

If it was not you, ignore this e-mail.
`,
    };
  }
  return {
    to: email,
    subject,
    // Anybody can enter this address, so the recipient may not have asked for the e-mail.
    text: `Hello ${toSingleLine(name)},

somebody, most likely you, wants to use this address for their account. Open this link within ${ADDRESS_LINK_HOURS} hours, and sign in
as until now:

${publicUrl}/app/account/address?token=${token}

If it was not you, ignore this e-mail: nothing changes.
`,
  };
}

export function createAddressChangedMail({ name, former, email }: AddressChange): Mail {
  return {
    to: former,
    subject: 'Your e-mail address for Inkpad has changed',
    text: `Hello ${toSingleLine(name)},

you now sign in with ${email}. This address is not used any more.

If it was not you, ask your administrator for help at once.
`,
  };
}
