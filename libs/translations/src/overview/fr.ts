import type { Translations } from '../en.js';

export const overview: Translations['overview'] = {
  today: 'Aujourd’hui',
  allNumbers: 'Tous les chiffres',
  waiting: 'En attente de vous',
  messages: (text, count) =>
    `${text} ${count < 2 ? 'message n’a pas été envoyé' : 'messages n’ont pas été envoyés'}`,
  messagesWhy: 'Des liens vers des cartes que des clients n’ont pas reçus',
  rewards: (text, count) =>
    `${text} ${count < 2 ? 'récompense peut être utilisée' : 'récompenses peuvent être utilisées'}`,
  rewardsWhy: 'Les clients peuvent les demander à tout moment',
  imports: (text, count) =>
    `${text} ${count < 2 ? 'import attend d’être lancé' : 'imports attendent d’être lancés'}`,
  importsWhy: 'Vérifié, mais pas encore importé',
  setUp: 'Préparer votre commerce',
  progress: (done, all) => `${done} sur ${all}`,
  done: 'Fait',
  steps: {
    card: {
      title: 'Créer votre première carte',
      text: 'Choisissez les couleurs, les tampons et ce qu’ils récompensent.',
    },
    reward: { title: 'Ajouter une récompense', text: 'Ce que les tampons donnent aux clients.' },
    logo: {
      title: 'Ajouter votre logo',
      text: 'Il figure sur les cartes, les affiches et les e-mails.',
    },
    location: {
      title: 'Ajouter votre première adresse',
      text: 'Les téléphones montrent la carte à proximité.',
    },
    poster: {
      title: 'Imprimer une affiche',
      text: 'Les clients la scannent et ont la carte sur leur téléphone.',
    },
    team: { title: 'Inviter votre équipe', text: 'Chacun se connecte sous son propre nom.' },
    customer: {
      title: 'Accueillir votre premier client',
      text: 'Avec l’affiche, au comptoir ou en important un fichier.',
    },
  },
  go: 'Y aller',
  operator: 'Ce que peut ajouter la personne qui gère ce service',
  operatorWhy: 'Vous ne pouvez pas le faire vous-même. Adressez-vous à qui gère Inkpad pour vous.',
  services: {
    mail: 'E-mail : les liens vers les cartes et les mots de passe sont envoyés par e-mail',
    sms: 'SMS : les liens vers les cartes sont envoyés par SMS',
    apple: 'Apple Wallet : les cartes s’ajoutent aux iPhone',
    google: 'Google Wallet : les cartes s’ajoutent aux téléphones Android',
  },
  serviceMissing: 'Non configuré',
  pages: 'Toutes les pages',
  empty: 'Rien à gérer ici',
  emptyWhy: 'Demandez plus de droits à un propriétaire du commerce.',
};
