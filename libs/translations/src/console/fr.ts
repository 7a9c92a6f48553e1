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
    customers: { title: 'Clients', about: 'Trouver, corriger les tampons' },
    locations: { title: 'Adresses', about: 'Vos points de vente sur la carte' },
    posters: { title: 'Affiches', about: 'À imprimer et à afficher' },
    messages: { title: 'Messages', about: 'Liens envoyés aux clients' },
    numbers: { title: 'Chiffres', about: 'Comment va votre commerce' },
    transfers: { title: 'Import et export', about: 'Fichiers entrants et sortants' },
    users: { title: 'Équipe', about: 'Qui peut se connecter ici' },
    tokens: { title: 'Jetons d’API', about: 'Pour les caisses et boutiques en ligne' },
    webhooks: { title: 'Webhooks', about: 'Événements envoyés à d’autres systèmes' },
    brand: { title: 'Marque', about: 'Logo, couleurs, contact' },
    settings: { title: 'Réglages', about: 'Nom, langue, inscription' },
    history: { title: 'Historique', about: 'Tout ce qui s’est passé' },
    audit: { title: 'Journal', about: 'Changements de l’équipe et des jetons' },
  },
};
