import { toSingleLine } from '#messages/card-message-texts.js';
import type { Mail } from '#messages/mail.js';

export function createResetMail(
  { name, email }: { name: string; email: string },
  link: string,
): Mail {
  return {
    to: email,
    subject: 'A new password for Inkpad',
    // Anybody can enter this address, so the recipient may not have asked for the e-mail.
    text: `Hello ${toSingleLine(name)},

somebody, most likely you, has asked for a new password. Open this link within an hour to set it:

${link}

If it was not you, ignore this e-mail: your password stays the same.
`,
  };
}
