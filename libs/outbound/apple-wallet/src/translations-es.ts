import type { AppleTranslations } from './translations-en.js';

const stamps = (text: string, count: number) => `${text} ${count === 1 ? 'sello' : 'sellos'}`;

export const es: AppleTranslations = {
  stamps: 'Sellos',
  member: 'Socio',
  toReward: 'Para el premio',
  news: 'Novedades',
  balance: (text, count) => `Tienes ${stamps(text, count)}.`,
  unlocked: (reward) => `Premio desbloqueado: ${reward}.`,
  redeemed: (reward) => `Premio canjeado: ${reward}.`,
  rewards: 'Premios',
  reward: (name, text, count) => `${name}: ${stamps(text, count)}`,
  available: 'listo para ti',
  expires: 'Válida hasta',
  shops: 'Tiendas',
  void: 'Esta tarjeta ya no es válida.',
  description: (card, store) => `Tarjeta de sellos «${card}» de ${store}`,
};
