/**
 * What a card link is sent with. `store` and `link` come ready to be shown. Nothing else of a message varies: what a
 * stranger has typed into a form must not reach anybody through it.
 */
export type Translations = {
  subject: (store: string) => string;
  intro: (store: string) => string;
  /** On the button; the text alternative has the link itself. */
  open: string;
  /** What to do with the page behind the link. */
  advice: string;
  /** To whoever has asked for nothing. */
  why: (store: string) => string;
  /** One SMS: the shorter, the more room is left for the name of the store. In the characters of GSM-7. */
  sms: (store: string, link: string) => string;
};

export const en: Translations = {
  subject: (store) => `Your stamp card from ${store}`,
  intro: (store) => `Here is your stamp card from ${store}.`,
  open: 'Open my card',
  advice:
    'Open it on your phone to add it to Apple Wallet or Google Wallet, or use it right in the browser. Keep the link to yourself: whoever has it can show your card.',
  why: (store) =>
    `You are getting this e-mail because somebody gave your address for a stamp card from ${store}. If it was not you, you need not do anything.`,
  sms: (store, link) => `Your stamp card from ${store}: ${link}`,
};
