import type { Translations } from '../en.js';

export const locationPages: Translations['locationPages'] = {
  title: 'Adresses',
  about:
    'Les téléphones peuvent montrer la carte quand un client est près d’un de vos points de vente. Il leur faut l’endroit exact sur le plan.',
  add: 'Ajouter une adresse',
  none: 'Aucune adresse pour le moment',
  noneWhy: 'Ajoutez votre commerce, pour que les téléphones montrent la carte à proximité.',
  columns: { name: 'Nom', address: 'Adresse', map: 'Sur le plan' },
  actions: 'Actions',
  edit: 'Modifier',
  editOf: (name) => `Modifier ${name}`,
  states: {
    pinned: 'Repéré',
    found: 'Trouvé',
    needsPin: 'À repérer',
    lookingUp: 'Recherche en cours',
    notFound: 'Introuvable',
  },
  explanations: {
    found: 'L’adresse a été trouvée. Regardez le plan, et confirmez l’endroit s’il est exact.',
    town: 'Seule la ville a été trouvée. Placez un repère, pour que les téléphones montrent la carte à proximité.',
    lookingUp:
      'L’adresse est en cours de recherche. Inutile d’attendre : un repère est plus précis.',
    notFound:
      'L’adresse est introuvable. Placez un repère, pour que les téléphones montrent la carte à proximité.',
  },
  newTitle: 'Nouvelle adresse',
  details: 'Nom et adresse',
  name: 'Nom',
  nameHint: 'Par exemple « Vieille ville ». Les clients le voient sur leur téléphone.',
  address: 'Adresse',
  addressHint: 'Rue, code postal, ville et pays.',
  addressChanges: 'Si l’adresse change, le repère est supprimé.',
  save: 'Enregistrer',
  create: 'Ajouter l’adresse',
  pin: 'Sur le plan',
  pinWhy: 'Vous êtes sur place ? Alors cela suffit :',
  here: 'Utiliser ma position',
  locating: 'Recherche de votre position…',
  hereFailed:
    'Cet appareil n’a pas donné sa position. Autorisez-la dans le navigateur, ou collez le lien d’un plan.',
  link: 'Lien d’un plan',
  linkHint: 'De Google Maps, Apple Plans ou OpenStreetMap. « 53.5503, 9.9929 » convient aussi.',
  findOn: (map) => `Chercher le commerce sur ${map}`,
  numbers: 'Plus : saisir les nombres',
  latitude: 'Latitude',
  longitude: 'Longitude',
  setPin: 'Placer le repère',
  changePin: 'Déplacer le repère',
  confirmPin: 'Confirmer le repère',
  seePin: 'Voir le repère sur le plan',
  far: (distance, address) => `Cet endroit est à ${distance} de ${address}. Est-il exact ?`,
  farNow: (distance) =>
    `Le repère est à ${distance} de l’adresse. Vérifiez que les deux sont exacts.`,
  setAnyway: 'Oui, le placer là',
  removePin: 'Supprimer le repère',
  remove: 'Supprimer l’adresse',
  removeAsk: 'Supprimer cette adresse ?',
  removeText:
    'Les cartes n’apparaissent plus à proximité, et les caisses ne peuvent plus l’indiquer. L’historique la garde.',
  removeYes: 'Supprimer',
  keep: 'La garder',
  removePinAsk: 'Supprimer ce repère ?',
  removePinText:
    'L’adresse est recherchée de nouveau. Si seule la ville est trouvée, les téléphones ne montrent plus la carte à proximité.',
  removePinYes: 'Supprimer le repère',
  back: 'Toutes les adresses',
  done: {
    created: 'L’adresse est ajoutée. Placez maintenant son repère.',
    saved: 'Enregistré.',
    pinned: 'Le repère est placé.',
    unpinned: 'Le repère est supprimé.',
    removed: 'L’adresse est supprimée.',
  },
  rejected: 'Pas encore enregistré. Vérifiez les champs marqués en rouge.',
  limitReached:
    'Vous avez atteint le nombre maximal d’adresses. Adressez-vous à la personne qui gère ce service.',
  errors: {
    name: 'Indiquez un nom de 255 caractères au plus',
    address: 'Indiquez une adresse de 500 caractères au plus',
    place: 'Collez le lien d’un plan, ou deux nombres comme 53.5503, 9.9929',
  },
  credits: {
    offline: 'Lieux : GeoNames (geonames.org), CC BY 4.0',
    server: 'Adresses : © les contributeurs d’OpenStreetMap',
  },
};
