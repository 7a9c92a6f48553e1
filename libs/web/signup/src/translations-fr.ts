import type { Translations } from './translations-en.js';

export const fr: Translations = {
  intro: (card) => `Recevez « ${card} » sur votre téléphone. Sans application.`,
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
  faults: {
    nameMissing: 'Veuillez saisir votre prénom.',
    nameUnfit: 'Veuillez saisir un nom sans lien ni adresse.',
    emailMissing: 'Veuillez saisir votre adresse e-mail.',
    emailUnfit: 'Veuillez saisir une adresse complète, par exemple anna@example.com.',
    phoneMissing: 'Veuillez saisir votre numéro de téléphone.',
    phoneUnfit: 'Ce numéro semble incorrect. Veuillez vérifier ses chiffres.',
    phoneWithoutCountry: 'Veuillez commencer par l’indicatif du pays, par exemple +33.',
    birthdayMissing: 'Veuillez saisir votre date de naissance.',
    birthdayUnfit: 'Veuillez saisir votre date de naissance ainsi : 1990-05-31.',
  },
  tooYoung: (years) => `La carte est réservée aux personnes de ${years} ans et plus.`,
  formFaults: {
    marked: 'Presque terminé. Veuillez vérifier les champs signalés.',
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
};
