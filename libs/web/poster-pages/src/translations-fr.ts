import type { PosterTranslations } from './translations-en.js';

const stamps = (text: string, count: number) => `${text} tampon${count > 1 ? 's' : ''}`;

export const fr: PosterTranslations = {
  stampCard: 'Carte de fidélité',
  offer: (text, count) => `pour ${stamps(text, count)}`,
  collect: (text, count) => `Collectez ${stamps(text, count)}`,
  scan: 'Scannez pour obtenir votre carte',
  signUp: 'Obtenir ma carte',
  download: 'Affiche à imprimer',
  otherSizes: 'Autres formats',
  paperSize: 'Papier',
  withBleed: 'PDF avec fond perdu et traits de coupe',
};
