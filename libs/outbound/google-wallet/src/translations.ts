import { getTranslations } from '#kernel/languages.js';

/** The texts of a pass besides the store's own. */
export type GoogleTranslations = {
  stamps: string;
  member: string;
  /** Label of the code beneath the barcode. */
  code: string;
  /** Label of the number of stamps that are missing. */
  toReward: string;
  rewards: string;
  /** One line of the list of rewards. */
  reward: (name: string, stamps: number) => string;
  /** Heading of the rewards that the customer can redeem now. */
  ready: string;
  unlocked: { header: string; body: (reward: string) => string };
  page: string;
};

const de: GoogleTranslations = {
  stamps: 'Stempel',
  member: 'Mitglied',
  code: 'Kartencode',
  toReward: 'Bis zur Prämie',
  rewards: 'Prämien',
  reward: (name, stamps) => `${name}: ${stamps} Stempel`,
  ready: 'Einlösbar',
  unlocked: { header: 'Prämie erreicht', body: (reward) => `Jetzt einlösbar: ${reward}` },
  page: 'Karte im Browser',
};

const en: GoogleTranslations = {
  stamps: 'Stamps',
  member: 'Member',
  code: 'Card code',
  toReward: 'To next reward',
  rewards: 'Rewards',
  reward: (name, stamps) => `${name}: ${stamps} ${stamps === 1 ? 'stamp' : 'stamps'}`,
  ready: 'Ready for you',
  unlocked: { header: 'Reward unlocked', body: (reward) => `Ready for you: ${reward}` },
  page: 'Card in the browser',
};

const es: GoogleTranslations = {
  stamps: 'Sellos',
  member: 'Miembro',
  code: 'Código de la tarjeta',
  toReward: 'Hasta el premio',
  rewards: 'Premios',
  reward: (name, stamps) => `${name}: ${stamps} ${stamps === 1 ? 'sello' : 'sellos'}`,
  ready: 'Disponible para ti',
  unlocked: { header: 'Premio conseguido', body: (reward) => `Disponible para ti: ${reward}` },
  page: 'Tarjeta en el navegador',
};

const fr: GoogleTranslations = {
  stamps: 'Tampons',
  member: 'Membre',
  code: 'Code de la carte',
  toReward: 'Avant la récompense',
  rewards: 'Récompenses',
  reward: (name, stamps) => `${name} : ${stamps} ${stamps === 1 ? 'tampon' : 'tampons'}`,
  ready: 'Disponible',
  unlocked: { header: 'Récompense débloquée', body: (reward) => `Disponible : ${reward}` },
  page: 'Carte dans le navigateur',
};

/** To add a language, add its texts above and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

/** Returns the texts of a language. @param locale the store's */
export function getGoogleTranslations(locale: string): GoogleTranslations {
  return getTranslations<GoogleTranslations>(LANGUAGES, locale).t;
}
