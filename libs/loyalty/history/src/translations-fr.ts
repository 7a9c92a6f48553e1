import type { Translations } from './translations-en.js';

const s = (count: number) => (count < 2 ? '' : 's');
const stamps = (text: string, count: number) => `${text} tampon${s(count)}`;

export const fr: Translations = {
  issued: 'carte créée',
  earned: (text, count) => `${stamps(text, count)} ajouté${s(count)}`,
  welcome: (text, count) => `${stamps(text, count)} de bienvenue`,
  credited: (text, count) => `correction : ${stamps(text, count)} ajouté${s(count)}`,
  removed: (text, count) => `correction : ${stamps(text, count)} retiré${s(count)}`,
  unlocked: (reward) => `récompense « ${reward} » débloquée`,
  redeemed: (reward, text, count) =>
    `récompense « ${reward} » utilisée pour ${stamps(text, count)}`,
  moved: 'carte transférée à un autre client',
  merged: 'carte fusionnée avec une autre, qui la remplace',
  absorbed: 'une autre carte fusionnée avec celle-ci',
  unmerged: 'fusion de cartes annulée',
  other: (type) => type,
  earlier: (text, count) => `${text} entrée${s(count)} antérieure${s(count)}`,
  at: (location) => `chez ${location}`,
  by: (who) => `par ${who}`,
  receipt: (number) => `ticket ${number}`,
  reverses: (when) => `annule l’entrée du ${when}`,
  reversed: (when) => `annulé le ${when}`,
};
