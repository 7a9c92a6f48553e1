import type { PosterTranslations } from './translations-en.js';

const stamps = (text: string, count: number) => `${text} sello${count === 1 ? '' : 's'}`;

export const es: PosterTranslations = {
  stampCard: 'Tarjeta de sellos',
  offer: (text, count) => `por ${stamps(text, count)}`,
  collect: (text, count) => `Reúne ${stamps(text, count)}`,
  scan: 'Escanea y consigue tu tarjeta',
  signUp: 'Conseguir mi tarjeta',
  download: 'Cartel para imprimir',
  otherSizes: 'Otros tamaños',
  paperSize: 'Papel',
  withBleed: 'PDF con sangrado y marcas de corte',
};
