import type { Translations } from './translations-en.js';

export const de: Translations = {
  subject: (store) => `Deine Stempelkarte von ${store}`,
  intro: (store) => `Hier ist deine Stempelkarte von ${store}.`,
  open: 'Meine Karte öffnen',
  advice:
    'Öffne sie auf deinem Handy, um sie zu Apple Wallet oder Google Wallet hinzuzufügen, oder nutze sie direkt im Browser. Gib den Link nicht weiter: Wer ihn hat, kann deine Karte vorzeigen.',
  why: (store) =>
    `Du bekommst diese E-Mail, weil deine Adresse für eine Stempelkarte von ${store} angegeben wurde. Falls du das nicht warst, brauchst du nichts zu tun.`,
  sms: (store, link) => `Deine Stempelkarte von ${store}: ${link}`,
};
