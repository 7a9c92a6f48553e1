/**
 * The texts that a card link is sent with. `store` and `link` come ready to be shown. Nothing else in a message varies:
 * text that a stranger typed into a form must not reach anybody through it.
 */
export type Translations = {
  subject: (store: string) => string;
  intro: (store: string) => string;
  /** The label of the button; the plain text has the link itself. */
  open: string;
  /** Says how to use the page behind the link. */
  advice: string;
  /** Explains the mail to a person who did not sign up. */
  why: (store: string) => string;
  /** An SMS in GSM-7 characters. The shorter it is, the more room is left for the name of the store. */
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
