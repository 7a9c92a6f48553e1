/** The texts of a pass besides the store's own. Counts are formatted for the language. */
export type AppleTranslations = {
  stamps: string;
  member: string;
  /** Label of the number of stamps that are missing. */
  toReward: string;
  news: string;
  /** The value of `news` when there is no other notice. */
  balance: (stamps: string, count: number) => string;
  unlocked: (reward: string) => string;
  redeemed: (reward: string) => string;
  rewards: string;
  /** One line of the list of rewards. */
  reward: (name: string, stamps: string, count: number) => string;
  available: string;
  expires: string;
  shops: string;
  void: string;
  /** VoiceOver reads this out. */
  description: (card: string, store: string) => string;
};

const stamps = (text: string, count: number) => `${text} ${count === 1 ? 'stamp' : 'stamps'}`;

export const en: AppleTranslations = {
  stamps: 'Stamps',
  member: 'Member',
  toReward: 'To next reward',
  news: 'Latest news',
  balance: (text, count) => `You have ${stamps(text, count)}.`,
  unlocked: (reward) => `Reward unlocked: ${reward}.`,
  redeemed: (reward) => `Reward redeemed: ${reward}.`,
  rewards: 'Rewards',
  reward: (name, text, count) => `${name}: ${stamps(text, count)}`,
  available: 'ready for you',
  expires: 'Valid until',
  shops: 'Shops',
  void: 'This card is no longer valid.',
  description: (card, store) => `Stamp card “${card}” of ${store}`,
};
