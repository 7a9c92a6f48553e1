import type { Translations } from './translations-en.js';

const stamps = (text: string) => `${text} Stempel`;

export const de: Translations = {
  issued: 'Karte ausgestellt',
  earned: (text) => `${stamps(text)} gesammelt`,
  welcome: (text) => `${stamps(text)} zur Begrüßung`,
  credited: (text) => `Korrektur: ${stamps(text)} gutgeschrieben`,
  removed: (text) => `Korrektur: ${stamps(text)} abgezogen`,
  unlocked: (reward) => `Prämie „${reward}“ freigeschaltet`,
  redeemed: (reward, text) => `Prämie „${reward}“ für ${stamps(text)} eingelöst`,
  moved: 'Karte an einen anderen Kunden übergeben',
  merged: 'Karte mit einer anderen zusammengelegt, die weitergilt',
  absorbed: 'eine andere Karte mit dieser zusammengelegt',
  unmerged: 'Zusammenlegung von Karten rückgängig gemacht',
  other: (type) => type,
  earlier: (text, count) => (count === 1 ? `${text} früherer Eintrag` : `${text} frühere Einträge`),
  at: (location) => `Filiale ${location}`,
  by: (who) => `von ${who}`,
  receipt: (number) => `Beleg ${number}`,
  reverses: (when) => `macht den Eintrag vom ${when} rückgängig`,
  reversed: (when) => `rückgängig gemacht am ${when}`,
};
