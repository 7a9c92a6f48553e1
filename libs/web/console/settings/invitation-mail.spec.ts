import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { createInvitationMail } from './invitation-mail.js';

it('createInvitationMail keeps names on one line and removes characters that change the text direction', () => {
  const hostile = (name: string) => `${name}\r\nBcc: all@x.example\u0000 \u202eevil`;
  const { subject, text } = createInvitationMail(
    {
      email: 'ada@shop.example',
      secret: 'secret',
      role: 'staff',
      store: { name: hostile('Café') },
      inviter: hostile('Ada'),
    },
    { publicUrl: 'https://cards.example' },
    getTranslations('en'),
  );
  expect(subject).toBe('Your invitation to Café Bcc: all@x.example evil');
  expect(text.split('\n')[0]).toBe(
    'Ada Bcc: all@x.example evil has invited you to Café Bcc: all@x.example evil on Inkpad, as staff.',
  );
  expect(text).toContain('\nhttps://cards.example/app/invitations/secret\n');
});
