import type { CustomerTextChanges } from '../customer-texts.js';

/** Where customers are addressed as "Sie". Everything else addresses nobody. */
export const deFormal: CustomerTextChanges = {
  applePass: {
    balance: (text) => `Sie haben ${text} Stempel.`,
    available: 'liegt für Sie bereit',
  },
  cardMessage: {
    subject: (store) => `Ihre Stempelkarte von ${store}`,
    intro: (store) => `Hier ist Ihre Stempelkarte von ${store}.`,
    advice:
      'Öffnen Sie sie auf Ihrem Handy, um sie zu Apple Wallet oder Google Wallet hinzuzufügen, oder nutzen Sie sie direkt im Browser. Geben Sie den Link nicht weiter: Wer ihn hat, kann Ihre Karte vorzeigen.',
    why: (store) =>
      `Sie bekommen diese E-Mail, weil Ihre Adresse für eine Stempelkarte von ${store} angegeben wurde. Falls Sie das nicht waren, brauchen Sie nichts zu tun.`,
    sms: (store, link) => `Ihre Stempelkarte von ${store}: ${link}`,
  },
  holderMessages: {
    why: (store) => `Diese Nachricht kommt, weil Sie eine Karte von ${store} haben.`,
    page: {
      on: 'Das Geschäft darf Ihnen schreiben: auf der Karte im Wallet, in diesem Browser und, wenn Sie zugestimmt haben, per E-Mail oder SMS.',
      off: 'Sie bekommen keine Nachrichten mehr von diesem Geschäft. Ihre Karte und Ihre Stempel bleiben, wie sie sind.',
    },
  },
};
