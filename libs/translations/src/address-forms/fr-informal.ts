import type { CustomerTextChanges } from '../customer-texts.js';
import { fr } from '../fr.js';

const s = (count: number) => (count < 2 ? '' : 's');
const stamps = fr.stamps.count;

/** Where customers are addressed as "tu". Everything else addresses nobody. */
export const frInformal: CustomerTextChanges = {
  card: {
    full: (text, cards) => (cards === 1 ? 'Ta carte est pleine' : `${text} cartes pleines`),
    rewardReady: 'Ta récompense est prête',
    rewardsReady: 'Tes récompenses sont prêtes',
    howToRedeem: 'Présente le code à la caisse et dis ce qui te ferait plaisir.',
    enjoy: 'Profites-en bien !',
    joinedWhy:
      'Un lien vers ta carte t’est envoyé. Tu avais déjà des tampons ici ? Présente quand même ce code : la caisse retrouve tes tampons.',
    joinedWithoutLink:
      'Aucun lien vers cette carte ne peut t’être envoyé : ajoute-la à ton wallet ou enregistre cette page. Tu avais déjà des tampons ici ? Présente quand même ce code : la caisse retrouve tes tampons.',
    showCode: 'Présente ce code à la caisse',
    expired: (day) => `Cette carte a expiré le ${day}. Demandes-en une nouvelle à la caisse.`,
    onYourPhone: 'Sur ton téléphone',
    notificationsFailed: 'Les notifications n’ont pas pu être activées. Réessaie plus tard.',
    installByHand:
      'Pour garder la carte à portée de main : touche « Partager », puis « Sur l’écran d’accueil ».',
    notFoundWhy:
      'Le lien est peut-être incomplet, ou la carte a été supprimée. Ouvre à nouveau le lien de ton message, ou scanne l’affiche en magasin pour obtenir une nouvelle carte.',
  },
  notice: {
    toReward: (text, count, reward) =>
      `Plus que ${stamps(text, count)} avant ta récompense : ${reward}.`,
    unlocked: (reward) => `Ta récompense t’attend : ${reward}.`,
    redeemed: (reward) => `Récompense utilisée : ${reward}. Profites-en bien !`,
  },
  applePass: {
    balance: (text, count) => `Tu as ${stamps(text, count)}.`,
    available: 't’attend',
  },
  cardMessage: {
    subject: (store) => `Ta carte de fidélité ${store}`,
    intro: (store) => `Voici ta carte de fidélité ${store}.`,
    advice:
      'Ouvre-la sur ton téléphone pour l’ajouter à Apple Wallet ou Google Wallet, ou utilise-la directement dans le navigateur. Garde ce lien pour toi : toute personne qui l’a peut présenter ta carte.',
    why: (store) =>
      `Tu reçois cet e-mail parce que ton adresse a été indiquée pour une carte de fidélité ${store}. Si ce n’était pas toi, tu n’as rien à faire.`,
    sms: (store, link) => `Ta carte de fidélité ${store} : ${link}`,
  },
  holderMessages: {
    open: 'Ouvrir ta carte',
    why: (store) => `Tu reçois ce message car tu as une carte de ${store}.`,
    page: {
      on: 'Le commerce peut t’écrire : sur la carte de ton Wallet, dans ce navigateur et, si tu l’as accepté, par e-mail ou SMS.',
      off: 'Tu ne recevras plus de messages de ce commerce. Ta carte et tes tampons ne changent pas.',
    },
  },
  signup: {
    intro: (card) => `Reçois « ${card} » sur ton téléphone, sans application.`,
    welcome: (text, count) => `Tu commences avec ${stamps(text, count)}.`,
    preview: (card) => `Ta carte « ${card} »`,
    already: 'Tu as déjà cette carte',
    leaveEmpty: 'Laisse ce champ vide',
    fieldErrors: {
      nameMissing: 'Saisis ton prénom.',
      nameUnfit: 'Saisis un nom sans lien ni adresse.',
      emailMissing: 'Saisis ton adresse e-mail.',
      emailUnfit: 'Saisis une adresse complète, par exemple anna@example.com.',
      phoneMissing: 'Saisis ton numéro de téléphone.',
      phoneUnfit: 'Ce numéro semble incorrect. Vérifie ses chiffres.',
      phoneWithoutCountry: 'Commence par l’indicatif du pays, par exemple +33.',
      birthdayMissing: 'Saisis ta date de naissance.',
      birthdayUnfit: 'Saisis le jour, le mois et l’année en chiffres, par exemple 31, 5 et 1990.',
      birthdayFuture: 'Ce jour n’est pas encore arrivé. Vérifie l’année.',
    },
    formErrors: {
      marked: 'Vérifie les champs signalés en rouge.',
      contactMissing: 'Saisis une adresse e-mail ou un numéro de téléphone.',
      textsChanged: 'Les textes à côté des cases viennent de changer. Relis-les.',
      filledTrap: 'Renvoie le formulaire en laissant vide le champ à la fin.',
      stale: 'La page était trop ancienne. Renvoie le formulaire.',
    },
    tooMany: (minutes, count) =>
      `Beaucoup de personnes s’inscrivent ici en ce moment. Réessaie dans ${minutes} minute${s(count)}.`,
    elsewhereWhy:
      'Pour ta sécurité, il n’a pas été accepté. Scanne à nouveau le code de l’affiche.',
    goneWhy: 'Le lien est peut-être incomplet. Demandes-en un nouveau en magasin.',
    closedWhy: 'Renseigne-toi en magasin. Les cartes déjà délivrées restent valables.',
  },
  poster: {
    collect: (text, count) => `Collecte ${stamps(text, count)}`,
    scan: 'Scanne pour obtenir ta carte',
  },
};
