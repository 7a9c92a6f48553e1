import type { Translations } from '../en.js';

export const console: Translations['console'] = {
  skip: 'Aller au contenu',
  you: 'Votre compte',
  signOut: 'Se déconnecter',
  menu: 'Menu',
  overview: 'Vue d’ensemble',
  stores: 'Vos commerces',
  navigation: {
    cards: { title: 'Cartes', about: 'Aspect, récompenses, limites' },
    locations: { title: 'Adresses', about: 'Vos points de vente sur la carte' },
    posters: { title: 'Affiches', about: 'À imprimer et à afficher' },
    messages: { title: 'Messages', about: 'Liens envoyés aux clients' },
    users: { title: 'Équipe', about: 'Qui peut se connecter ici' },
    tokens: { title: 'Jetons d’API', about: 'Pour les caisses et boutiques en ligne' },
    settings: { title: 'Réglages', about: 'Nom, langue, inscription' },
    audit: { title: 'Journal', about: 'Changements de l’équipe et des jetons' },
  },
};
