import type { Translations } from './translations-en.js';

const s = (count: number) => (count === 1 ? '' : 's');
const stamps = (text: string, count: number) => `${text} sello${s(count)}`;

export const es: Translations = {
  issued: 'tarjeta emitida',
  earned: (text, count) => `${stamps(text, count)} añadido${s(count)}`,
  welcome: (text, count) => `${stamps(text, count)} de bienvenida`,
  credited: (text, count) => `corrección: ${stamps(text, count)} añadido${s(count)}`,
  removed: (text, count) => `corrección: ${stamps(text, count)} retirado${s(count)}`,
  unlocked: (reward) => `recompensa «${reward}» desbloqueada`,
  redeemed: (reward, text, count) => `recompensa «${reward}» canjeada por ${stamps(text, count)}`,
  moved: 'tarjeta traspasada a otro cliente',
  merged: 'tarjeta fusionada con otra, que sigue en uso',
  absorbed: 'otra tarjeta fusionada con esta',
  unmerged: 'fusión de tarjetas deshecha',
  other: (type) => type,
  earlier: (text, count) => `${text} entrada${s(count)} anterior${count === 1 ? '' : 'es'}`,
  at: (location) => `en ${location}`,
  by: (who) => `por ${who}`,
  receipt: (number) => `recibo ${number}`,
  reverses: (when) => `anula la entrada del ${when}`,
  reversed: (when) => `anulado el ${when}`,
};
