/** Around the messages that stores write to the holders of their cards. */
export const holderMessages = {
  open: 'Open your card',
  why: (store: string) => `You are receiving this because you have a card from ${store}.`,
  stop: 'Stop messages',
  sms: (store: string, text: string, link: string) => `${store}: ${text} Card and opt-out: ${link}`,
  /** The page that stops them. */
  page: {
    title: (store: string) => `Messages from ${store}`,
    on: 'The shop may write to you: on the card in your wallet, in this browser, and by e-mail or text message if you agreed to that.',
    off: 'You will get no more messages from this shop. Your card and your stamps stay as they are.',
    stop: 'Stop all messages',
    allow: 'Allow messages again',
    back: 'Back to the card',
  },
};

export type HolderMessageTexts = typeof holderMessages;
