import type { Words } from './words-en.js';

const stamps = (text: string, count: number) => `${text} sello${count === 1 ? '' : 's'}`;

export const es: Words = {
  stampCard: 'Tarjeta de sellos',
  offer: (text, count) => `por ${stamps(text, count)}`,
  collect: (text, count) => `Reúne ${stamps(text, count)}`,
  scan: 'Escanea y consigue tu tarjeta',
};
