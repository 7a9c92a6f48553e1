import type { PosterTranslations } from './translations-en.js';

export const de: PosterTranslations = {
  stampCard: 'Stempelkarte',
  offer: (text) => `für ${text} Stempel`,
  collect: (text) => `${text} Stempel sammeln`,
  scan: 'Scannen und Stempelkarte holen',
  signUp: 'Stempelkarte holen',
  download: 'Poster zum Drucken',
  otherSizes: 'Andere Größen',
  paperSize: 'Papier',
  withBleed: 'PDF mit Anschnitt und Schnittmarken',
};
