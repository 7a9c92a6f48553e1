import type { AppleTranslations } from './translations-en.js';

export const de: AppleTranslations = {
  stamps: 'Stempel',
  member: 'Mitglied',
  toReward: 'Bis zur Prämie',
  news: 'Neuigkeiten',
  balance: (text) => `Du hast ${text} Stempel.`,
  unlocked: (reward) => `Prämie freigeschaltet: ${reward}.`,
  redeemed: (reward) => `Prämie eingelöst: ${reward}.`,
  rewards: 'Prämien',
  reward: (name, text) => `${name}: ${text} Stempel`,
  available: 'liegt für dich bereit',
  expires: 'Gültig bis',
  shops: 'Filialen',
  void: 'Diese Karte ist nicht mehr gültig.',
  description: (card, store) => `Stempelkarte „${card}“ von ${store}`,
};
