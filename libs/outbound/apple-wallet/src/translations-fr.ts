import type { AppleTranslations } from './translations-en.js';

const stamps = (text: string, count: number) => `${text} ${count < 2 ? 'tampon' : 'tampons'}`;

export const fr: AppleTranslations = {
  stamps: 'Tampons',
  member: 'Membre',
  toReward: 'Avant la récompense',
  news: 'Nouveautés',
  balance: (text, count) => `Vous avez ${stamps(text, count)}.`,
  unlocked: (reward) => `Récompense débloquée : ${reward}.`,
  redeemed: (reward) => `Récompense utilisée : ${reward}.`,
  rewards: 'Récompenses',
  reward: (name, text, count) => `${name} : ${stamps(text, count)}`,
  available: 'vous attend',
  expires: 'Valable jusqu’au',
  shops: 'Boutiques',
  void: 'Cette carte n’est plus valable.',
  description: (card, store) => `Carte de fidélité « ${card} » de ${store}`,
};
