import type { Translations } from './translations-en.js';

export const fr: Translations = {
  subject: (store) => `Votre carte de fidélité ${store}`,
  intro: (store) => `Voici votre carte de fidélité ${store}.`,
  open: 'Ouvrir ma carte',
  advice:
    'Ouvrez-la sur votre téléphone pour l’ajouter à Apple Wallet ou Google Wallet, ou utilisez-la directement dans le navigateur. Gardez ce lien pour vous : toute personne qui l’a peut présenter votre carte.',
  why: (store) =>
    `Vous recevez cet e-mail parce que votre adresse a été indiquée pour une carte de fidélité ${store}. Si ce n’était pas vous, vous n’avez rien à faire.`,
  sms: (store, link) => `Votre carte de fidélité ${store} : ${link}`,
};
