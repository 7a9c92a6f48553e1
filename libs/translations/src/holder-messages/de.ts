import type { HolderMessageTexts } from './en.js';

export const holderMessages: HolderMessageTexts = {
  open: 'Karte öffnen',
  why: (store) => `Diese Nachricht kommt, weil du eine Karte von ${store} hast.`,
  stop: 'Nachrichten abbestellen',
  sms: (store, text, link) => `${store}: ${text} Karte und Abbestellen: ${link}`,
  page: {
    title: (store) => `Nachrichten von ${store}`,
    on: 'Das Geschäft darf dir schreiben: auf der Karte im Wallet, in diesem Browser und, wenn du zugestimmt hast, per E-Mail oder SMS.',
    off: 'Du bekommst keine Nachrichten mehr von diesem Geschäft. Deine Karte und deine Stempel bleiben, wie sie sind.',
    stop: 'Alle Nachrichten abbestellen',
    allow: 'Nachrichten wieder erlauben',
    back: 'Zurück zur Karte',
  },
};
