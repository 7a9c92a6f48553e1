import type { Translations } from '../en.js';

export const brand: Translations['brand'] = {
  title: 'Marque',
  intro:
    'Votre logo et vos coordonnées : sur les cartes, les pass, la page d’inscription, les affiches et les messages.',
  logo: {
    title: 'Logo',
    none: 'Il n’y a pas encore de logo. L’icône de vos tampons le remplace.',
    file: 'Image',
    hint: 'PNG, JPEG ou WebP, 2 Mo au maximum. Un PNG à fond transparent rend le mieux.',
    upload: 'Envoyer',
    replace: 'Remplacer le logo',
    remove: 'Supprimer le logo',
    missing: 'Veuillez choisir une image.',
    wrongType: 'Veuillez choisir une image PNG, JPEG ou WebP.',
  },
  colors: {
    title: 'Couleurs tirées de votre logo',
    why: 'Trois propositions pour une carte. Vous pourrez modifier chaque couleur ensuite.',
    choose: 'Proposition',
    names: ['Vive', 'Claire', 'Sombre'],
    card: 'Carte',
    apply: 'Utiliser ces couleurs',
    missing: 'Veuillez choisir l’une des propositions.',
  },
  contact: {
    why: 'Au dos des pass et sous la carte dans le navigateur. Un champ vide n’est pas affiché.',
    optional: 'facultatif',
    hints: {
      website: 'Par exemple cafe.example',
      address: 'Peut avoir plusieurs lignes.',
      terms_text: 'Ce que les clients doivent savoir, par exemple « un tampon par boisson ».',
    },
    save: 'Enregistrer',
  },
  done: {
    logo: 'Le logo est désormais utilisé.',
    removed: 'Le logo a été supprimé.',
    colors: 'La carte a ses nouvelles couleurs.',
    contact: 'Enregistré.',
  },
};
