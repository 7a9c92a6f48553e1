import type { CardTranslations } from './translations-en.js';

const s = (count: number) => (count < 2 ? '' : 's');
const stamps = (text: string, count: number) => `${text} tampon${s(count)}`;

export const fr: CardTranslations = {
  stamps: 'Tampons',
  stampsOf: (have, need) => `${have} tampons sur ${need}`,
  stampsBeyond: stamps,
  joined: 'Bienvenue !',
  joinedWhy:
    'Un lien vers votre carte vous est envoyé. Si vous aviez déjà une carte ici, il ouvre celle-là, avec vos tampons : gardez-la plutôt que celle-ci.',
  joinedWithoutLink:
    'Aucun lien vers votre carte ne peut être envoyé à l’adresse ou au numéro indiqué. Gardez cette page : ajoutez la carte à votre wallet, ou enregistrez la page. Si vous aviez déjà une carte ici, demandez-la à la caisse.',
  member: 'Membre',
  toReward: 'Prochaine récompense dans',
  stampCount: stamps,
  rewards: 'Récompenses',
  ready: 'Disponible',
  toGo: (text, count) => `Encore ${stamps(text, count)}`,
  qrCode: (code) => `Code QR de la carte ${code}`,
  showCode: 'Présentez ce code à la caisse',
  validUntil: (day) => `Valable jusqu’au ${day}`,
  expired: (day) => `Cette carte a expiré le ${day}.`,
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
    'Le lien est peut-être incomplet, ou la carte a été supprimée. Renseignez-vous en magasin.',
  unavailable: 'La carte ne peut pas être affichée pour le moment',
  unavailableWhy: 'Veuillez réessayer dans un instant. Vos tampons sont bien enregistrés.',
  noticeStamped: (text, count) => `${stamps(text, count)} ajouté${s(count)}`,
  noticeUnlocked: (reward) => `${reward} : disponible !`,
  noticeRedeemed: (reward) => `${reward} : utilisé. Profitez-en bien !`,
};
