import { cardPages } from './card-pages/fr.js';
import { brand } from './brand/fr.js';
import { console } from './console/fr.js';
import { locationPages } from './location-pages/fr.js';
import { posterConsole } from './poster-console/fr.js';
import { customerPages } from './customer-pages/fr.js';
import { webhookPages } from './webhook-pages/fr.js';
import { numbers } from './numbers/fr.js';
import { overview } from './overview/fr.js';
import { transfers } from './transfer-pages/fr.js';
import { counter } from './counter/fr.js';
import { en, type Translations } from './en.js';
import { forms } from './forms/fr.js';
import { holderMessages } from './holder-messages/fr.js';
import { messagePages } from './message-pages/fr.js';
import { outbox } from './outbox/fr.js';
import { signIn } from './sign-in/fr.js';

const s = (count: number) => (count < 2 ? '' : 's');
const stamps = (text: string, count: number) => `${text} tampon${s(count)}`;

export const fr: Translations = {
  stamps: {
    label: 'Tampons',
    count: stamps,
    added: (text, count) => `${stamps(text, count)} ajouté${s(count)}`,
  },
  wallet: {
    rewards: 'Récompenses',
    reward: (name, text, count) => `${name} : ${stamps(text, count)}`,
    moreRewards: (text, count) =>
      `Et ${text} autre${s(count)} récompense${s(count)} sur la page de la carte.`,
  },
  contact: {
    title: 'Contact',
    website: 'Site web',
    phone: 'Téléphone',
    email: 'E-mail',
    address: 'Adresse',
    terms: 'Conditions',
  },
  card: {
    stampsOf: (have, need) => `${have} tampons sur ${need}`,
    full: (text, cards) => (cards === 1 ? 'Votre carte est pleine' : `${text} cartes pleines`),
    surplus: (text, cards, have, need) =>
      `${text} carte${s(cards)} pleine${s(cards)} et ${have} sur ${need}`,
    rewardReady: 'Votre récompense est prête',
    rewardsReady: 'Vos récompenses sont prêtes',
    howToRedeem: 'Présentez le code à la caisse et dites ce qui vous ferait plaisir.',
    uses: (text, count) => `utilise ${stamps(text, count)}`,
    costs: stamps,
    enjoy: 'Profitez-en bien !',
    redeemedNow: (reward) => `${reward} : utilisé à l’instant.`,
    enlarge: 'Agrandir le code',
    close: 'Fermer',
    notNow: 'Pas maintenant',
    about: (store) => `Carte de fidélité de ${store}`,
    joined: 'Bienvenue !',
    joinedWhy:
      'Un lien vers votre carte vous est envoyé. Vous aviez déjà des tampons ici ? Présentez quand même ce code : la caisse retrouve vos tampons.',
    joinedWithoutLink:
      'Aucun lien vers cette carte ne peut vous être envoyé : ajoutez-la à votre wallet ou enregistrez cette page. Vous aviez déjà des tampons ici ? Présentez quand même ce code : la caisse retrouve vos tampons.',
    member: 'Membre',
    toReward: 'Prochaine récompense dans',
    rewards: 'Récompenses',
    ready: 'Disponible',
    toGo: (text, count) => `Encore ${stamps(text, count)}`,
    barcode: (code) => `Code-barres de la carte ${code}`,
    qrCode: (code) => `Code QR de la carte ${code}`,
    showCode: 'Présentez ce code à la caisse',
    validUntil: (day) => `Valable jusqu’au ${day}`,
    expired: (day) => `Cette carte a expiré le ${day}. Demandez-en une nouvelle à la caisse.`,
    onYourPhone: 'Sur votre téléphone',
    addToApple: 'Ajouter à Apple Wallet',
    addToGoogle: 'Ajouter à Google Wallet',
    notifyMe: 'Me prévenir des nouveaux tampons',
    stopNotifying: 'Ne plus me prévenir',
    notificationsBlocked:
      'Les notifications de cette page sont bloquées dans les réglages du navigateur.',
    notificationsFailed:
      'Les notifications n’ont pas pu être activées. Veuillez réessayer plus tard.',
    install: 'Mettre sur l’écran d’accueil',
    installByHand:
      'Pour garder la carte à portée de main : touchez « Partager », puis « Sur l’écran d’accueil ».',
    offline: (when) => `Hors connexion. La carte au ${when}.`,
    notFound: 'Cette carte n’existe pas',
    notFoundWhy:
      'Le lien est peut-être incomplet, ou la carte a été supprimée. Ouvrez à nouveau le lien de votre message, ou scannez l’affiche en magasin pour obtenir une nouvelle carte.',
  },
  notice: {
    toReward: (text, count, reward) =>
      `Plus que ${stamps(text, count)} avant votre récompense : ${reward}.`,
    toFullCard: (text, count) => `Plus que ${stamps(text, count)} avant une carte complète.`,
    unlocked: (reward) => `Votre récompense vous attend : ${reward}.`,
    redeemed: (reward) => `Récompense utilisée : ${reward}. Profitez-en bien !`,
  },
  applePass: {
    member: 'Membre',
    toReward: 'Encore',
    store: 'Boutique',
    card: 'Carte',
    openPage: 'Ouvrir la carte dans le navigateur',
    news: 'Nouveautés',
    balance: (text, count) => `Vous avez ${stamps(text, count)}.`,
    available: 'vous attend',
    expires: 'Valable jusqu’au',
    shops: 'Boutiques',
    void: 'Cette carte n’est plus valable.',
    description: (card, store) => `Carte de fidélité « ${card} » de ${store}`,
  },
  googlePass: {
    member: 'Membre',
    code: 'Code de la carte',
    toReward: 'Avant la récompense',
    ready: 'Disponible',
    unlocked: 'Récompense débloquée',
    page: 'Carte dans le navigateur',
  },
  cardMessage: {
    subject: (store) => `Votre carte de fidélité ${store}`,
    intro: (store) => `Voici votre carte de fidélité ${store}.`,
    open: 'Ouvrir ma carte',
    advice:
      'Ouvrez-la sur votre téléphone pour l’ajouter à Apple Wallet ou Google Wallet, ou utilisez-la directement dans le navigateur. Gardez ce lien pour vous : toute personne qui l’a peut présenter votre carte.',
    why: (store) =>
      `Vous recevez cet e-mail parce que votre adresse a été indiquée pour une carte de fidélité ${store}. Si ce n’était pas vous, vous n’avez rien à faire.`,
    sms: (store, link) => `Votre carte de fidélité ${store} : ${link}`,
  },
  // Not translated yet.
  failingMail: en.failingMail,
  retirementMail: en.retirementMail,
  signup: {
    intro: (card) => `Recevez « ${card} » sur votre téléphone, sans application.`,
    offer: (text, count) => `pour ${stamps(text, count)}`,
    welcome: (text, count) => `Vous commencez avec ${stamps(text, count)}.`,
    preview: (card) => `Votre carte « ${card} »`,
    day: 'Jour',
    month: 'Mois',
    year: 'Année',
    already: 'Vous avez déjà cette carte',
    alreadyWhy: (card) => `Ce téléphone a déjà servi à obtenir « ${card} ».`,
    openCard: 'Ouvrir ma carte',
    someoneElse: 'Inscrire quelqu’un d’autre',
    firstName: 'Prénom',
    lastName: 'Nom',
    email: 'E-mail',
    phone: 'Téléphone',
    birthday: 'Date de naissance',
    optional: 'facultatif',
    eitherContact: 'Une adresse e-mail ou un numéro de téléphone suffit.',
    minimumAge: (years) => `La carte est réservée aux personnes de ${years} ans et plus.`,
    privacy: 'Politique de confidentialité',
    submit: 'Recevoir la carte',
    leaveEmpty: 'Laissez ce champ vide',
    fieldErrors: {
      nameMissing: 'Veuillez saisir votre prénom.',
      nameUnfit: 'Veuillez saisir un nom sans lien ni adresse.',
      emailMissing: 'Veuillez saisir votre adresse e-mail.',
      emailUnfit: 'Veuillez saisir une adresse complète, par exemple anna@example.com.',
      phoneMissing: 'Veuillez saisir votre numéro de téléphone.',
      phoneUnfit: 'Ce numéro semble incorrect. Veuillez vérifier ses chiffres.',
      phoneWithoutCountry: 'Veuillez commencer par l’indicatif du pays, par exemple +33.',
      birthdayMissing: 'Veuillez saisir votre date de naissance.',
      birthdayUnfit:
        'Veuillez saisir le jour, le mois et l’année en chiffres, par exemple 31, 5 et 1990.',
      birthdayFuture: 'Ce jour n’est pas encore arrivé. Veuillez vérifier l’année.',
    },
    formErrors: {
      marked: 'Veuillez vérifier les champs signalés en rouge.',
      contactMissing: 'Veuillez saisir une adresse e-mail ou un numéro de téléphone.',
      textsChanged: 'Les textes à côté des cases viennent de changer. Veuillez les relire.',
      filledTrap: 'Veuillez renvoyer le formulaire en laissant vide le champ à la fin.',
      stale: 'La page était trop ancienne. Veuillez renvoyer le formulaire.',
    },
    tooMany: (minutes, count) =>
      `Beaucoup de personnes s’inscrivent ici en ce moment. Veuillez réessayer dans ${minutes} ${count < 2 ? 'minute' : 'minutes'}.`,
    elsewhere: 'Ce formulaire venait d’un autre site',
    elsewhereWhy:
      'Pour votre sécurité, il n’a pas été accepté. Veuillez scanner à nouveau le code de l’affiche.',
    gone: 'Cette affiche n’est plus valable',
    goneWhy: 'Le lien est peut-être incomplet. Demandez-en un nouveau en magasin.',
    closed: 'Cette carte n’est pas délivrée en ce moment',
    closedWhy: 'Renseignez-vous en magasin. Les cartes déjà délivrées restent valables.',
  },
  poster: {
    stampCard: 'Carte de fidélité',
    offer: (text, count) => `pour ${stamps(text, count)}`,
    collect: (text, count) => `Collectez ${stamps(text, count)}`,
    scan: 'Scannez pour obtenir votre carte',
    signUp: 'Obtenir ma carte',
    download: 'Affiche à imprimer',
    otherSizes: 'Autres formats',
    paperSize: 'Papier',
    withBleed: 'PDF avec fond perdu et traits de coupe',
  },
  history: {
    issued: 'carte créée',
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
    earlier: (text, count) => `${text} entrée${s(count)} antérieure${s(count)}`,
    at: (location) => `chez ${location}`,
    by: (who) => `par ${who}`,
    receipt: (number) => `ticket ${number}`,
    reverses: (when) => `annule l’entrée du ${when}`,
    reversed: (when) => `annulé le ${when}`,
  },
  errorPage: {
    notFound: 'Cette page n’existe pas',
    notFoundWhy: 'Le lien est peut-être incomplet, ou la page a été supprimée.',
    forbidden: 'Vous n’avez pas accès à cette page',
    forbiddenWhy: 'Renseignez-vous en magasin.',
    tooMany: 'Trop de requêtes',
    tooManyWhy: (wait) => `Veuillez réessayer dans ${wait}.`,
    maintenance: 'Maintenance en cours',
    maintenanceWhy:
      'Pendant un moment, rien ne peut être modifié, mais tout reste consultable. Veuillez réessayer plus tard.',
    unavailable: 'Indisponible pour le moment',
    unavailableWhy: 'Rien de ce qui était enregistré n’a été perdu.',
    historyUnavailable: 'L’historique est injoignable pour le moment',
    historyUnavailableWhy:
      'Les tampons, les modifications et l’historique doivent attendre. Tout le reste peut toujours être consulté. Rien de ce qui était enregistré n’a été perdu.',
    checkBeforeSending:
      'Avant de renvoyer votre saisie, vérifiez dans un instant si elle a été enregistrée.',
    tryAgain: 'Veuillez réessayer dans un instant.',
    historyDamaged: 'L’historique de cette fiche est endommagé',
    historyDamagedWhy:
      'Cette fiche ne peut pas être modifiée, ou son passé ne peut pas être relu, tant que l’exploitant du service ne l’a pas réparée. Réessayer n’y change rien. Tout le reste continue.',
    unsettled: 'Nous ne savons pas si cela a été enregistré',
    unsettledWhy: 'Revenez en arrière, rechargez la page et vérifiez avant de recommencer.',
    broken: 'Une erreur s’est produite',
    brokenWhy: 'L’erreur vient de nous et a été notée. Veuillez réessayer.',
    refused: 'Cela n’a pas fonctionné',
    refusedWhy: 'Revenez en arrière et vérifiez ce que vous avez saisi.',
    requestNumber: (id) => `Demande ${id}`,
    start: 'Vers la page d’accueil',
    documentation: 'Vers la documentation',
  },
  console,
  cardPages,
  locationPages,
  posterConsole,
  customerPages,
  webhookPages,
  numbers,
  overview,
  transfers,
  brand,
  forms,
  holderMessages,
  messagePages,
  outbox,
  signIn,
  counter,
};
