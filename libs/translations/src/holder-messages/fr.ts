import type { HolderMessageTexts } from './en.js';

export const holderMessages: HolderMessageTexts = {
  open: 'Ouvrir votre carte',
  why: (store) => `Vous recevez ce message car vous avez une carte de ${store}.`,
  stop: 'Ne plus recevoir de messages',
  sms: (store, text, link) => `${store} : ${text} Carte et désinscription : ${link}`,
  page: {
    title: (store) => `Messages de ${store}`,
    on: 'Le commerce peut vous écrire : sur la carte de votre Wallet, dans ce navigateur et, si vous l’avez accepté, par e-mail ou SMS.',
    off: 'Vous ne recevrez plus de messages de ce commerce. Votre carte et vos tampons ne changent pas.',
    stop: 'Ne plus recevoir de messages',
    allow: 'Autoriser à nouveau les messages',
    back: 'Retour à la carte',
  },
};
