/** The translations of one language. Numbers come as text in the form of the language, and as the count itself. */
export type Translations = {
  issued: string;
  earned: (stamps: string, count: number) => string;
  welcome: (stamps: string, count: number) => string;
  /** By a correction. */
  credited: (stamps: string, count: number) => string;
  removed: (stamps: string, count: number) => string;
  unlocked: (reward: string) => string;
  redeemed: (reward: string, stamps: string, count: number) => string;
  /** To another customer. */
  moved: string;
  /** Into another card. */
  merged: string;
  /** Another card into this one. */
  absorbed: string;
  unmerged: string;
  /** Anything without a translation of its own. @param type such as `customer_card.moved` */
  other: (type: string) => string;
  /** Entries that are not shown one by one. */
  earlier: (entries: string, count: number) => string;
  at: (location: string) => string;
  by: (who: string) => string;
  receipt: (number: string) => string;
  /** @param when date and time of the entry that this one undoes */
  reverses: (when: string) => string;
  /** @param when date and time of the entry that undid this one */
  reversed: (when: string) => string;
};

const stamps = (text: string, count: number) => `${text} ${count === 1 ? 'stamp' : 'stamps'}`;

export const en: Translations = {
  issued: 'card issued',
  earned: (text, count) => `${stamps(text, count)} added`,
  welcome: (text, count) => `${stamps(text, count)} as a welcome`,
  credited: (text, count) => `correction: ${stamps(text, count)} added`,
  removed: (text, count) => `correction: ${stamps(text, count)} taken off`,
  unlocked: (reward) => `reward “${reward}” unlocked`,
  redeemed: (reward, text, count) => `reward “${reward}” redeemed for ${stamps(text, count)}`,
  moved: 'card handed over to another customer',
  merged: 'card merged into another one',
  absorbed: 'another card merged into this one',
  unmerged: 'merge of cards undone',
  other: (type) => type,
  earlier: (text, count) => `${text} earlier ${count === 1 ? 'entry' : 'entries'}`,
  at: (location) => `at ${location}`,
  by: (who) => `by ${who}`,
  receipt: (number) => `receipt ${number}`,
  reverses: (when) => `undoes the entry of ${when}`,
  reversed: (when) => `undone on ${when}`,
};
