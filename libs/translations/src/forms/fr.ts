import type { FormTexts } from './en.js';

const INVISIBLE =
  'Veuillez retirer les caractères invisibles. Ils viennent souvent d’un copier-coller.';
const REQUIRED = 'Veuillez remplir ce champ.';
const EMAIL = 'Veuillez saisir une adresse e-mail complète, par exemple nom@boutique.example.';
const RANGE = (min = '', max = '') => `Veuillez saisir un nombre de ${min} à ${max}.`;
const HTTPS = 'Veuillez saisir une adresse qui commence par https://.';
const ROLE = 'Veuillez choisir un rôle.';
const OPTION = 'Veuillez choisir une des options.';
const TIME_ZONE = 'Veuillez choisir un fuseau horaire.';
const LANGUAGE = 'Veuillez choisir une langue.';
const COUNTRY = 'Veuillez choisir un pays.';

export const forms: FormTexts = {
  optional: 'facultatif',
  show: 'Afficher',
  hide: 'Masquer',
  showPassword: 'Afficher le mot de passe',
  hidePassword: 'Masquer le mot de passe',
  copy: 'Copier',
  copied: 'Copié',
  share: 'Partager',
  check: (text, count) =>
    count < 2 ? 'Veuillez vérifier un champ' : `Veuillez vérifier ${text} champs`,
  errorsInTitle: (text, count) => `${text} ${count < 2 ? 'erreur' : 'erreurs'}`,
  other: (message) => `Cette saisie n’a pas été acceptée (it ${message}).`,
  notFound: 'Cet élément n’existe plus. Veuillez recharger la page.',
  messages: {
    'is required': REQUIRED,
    'must not be blank': REQUIRED,
    'must have 1 to {} characters': (max = '') => `Veuillez saisir de 1 à ${max} caractères.`,
    'must have at least {} characters': (min = '') =>
      `Veuillez utiliser au moins ${min} caractères.`,
    'must have at most {} characters': (max = '') => `Veuillez utiliser au plus ${max} caractères.`,
    'must not contain control or invisible characters': INVISIBLE,
    'may have only {} in braces': (list) => `Entre accolades, écrivez seulement ${list}.`,
    'must not contain NUL': INVISIBLE,
    'must be a string': 'Veuillez saisir un texte.',
    'must be a number': 'Veuillez saisir un nombre.',
    'must be an integer': 'Veuillez saisir un nombre entier.',
    'must be from {} to {}': RANGE,
    'must be between {} and {}': RANGE,
    'must be at least {}': (min = '') => `Veuillez saisir ${min} ou plus.`,
    'must be at most {}': (max = '') => `Veuillez saisir ${max} ou moins.`,
    'must be in the future': 'Veuillez choisir un moment à venir.',
    'must not be in the future': 'Cette date est à venir. Veuillez la vérifier.',
    'is not an e-mail address': EMAIL,
    'must be an e-mail address': EMAIL,
    'must be a phone number': 'Ce n’est pas un numéro de téléphone. Veuillez le vérifier.',
    'looks like a spreadsheet has changed it':
      'Un tableur a modifié ce numéro. Veuillez le saisir à nouveau.',
    'must be a phone number such as +49 721 123456':
      'Veuillez saisir un numéro de téléphone, par exemple +33 1 23 45 67 89.',
    'must be a web address such as https://cafe.example, without spaces and "#"':
      'Veuillez saisir une adresse web, par exemple https://cafe.example.',
    'must be an e-mail address such as hello@cafe.example':
      'Veuillez saisir une adresse e-mail complète, par exemple nom@shop.example.',
    'must be a real date such as 1990-05-31': 'Cette date n’existe pas. Veuillez la vérifier.',
    'must be a colour such as #6B4226': 'Veuillez choisir une couleur.',
    'must begin with https://': HTTPS,
    'must start with https://': HTTPS,
    'must be an address that begins with https://, without spaces, backslashes and "#"':
      'Veuillez saisir une adresse qui commence par https://, sans espace, barre oblique inverse ni « # ».',
    'is used by another user': 'Une autre personne se connecte déjà avec cette adresse.',
    'is wrong': 'C’est incorrect. Veuillez réessayer.',
    'must be another one than your first password':
      'Veuillez choisir un autre mot de passe que celui que vous avez reçu.',
    'is wrong. Sign in with your company again: then no password is asked for within ten minutes':
      'C’est incorrect. Si vous vous connectez par votre entreprise, vous n’avez peut-être pas de mot de passe ici. Connectez-vous de nouveau par votre entreprise : pendant dix minutes, aucun mot de passe n’est demandé.',
    'is wrong. Wait for the next one, and check that the clock of your phone is right':
      'Ce code est incorrect. Attendez le suivant, et vérifiez que l’heure de votre téléphone est juste.',
    'was changed too often. Try again in an hour':
      'L’adresse a été modifiée trop souvent. Veuillez réessayer dans une heure.',
    'has received too many e-mails today. Try again tomorrow':
      'Cette adresse a reçu trop d’e-mails aujourd’hui. Veuillez réessayer demain.',
    'is too easy to guess: use characters that do not repeat or follow one another':
      'C’est trop facile à deviner. Évitez les caractères qui se répètent ou se suivent.',
    'is too easy to guess, since many people use it or one like it: use several words that do not belong together':
      'C’est trop facile à deviner : beaucoup l’utilisent. Conseil : quelques mots au hasard.',
    'is too easy to guess: use more than your name, your address, the name of your store or of this service':
      'C’est trop facile à deviner. Utilisez plus que votre nom, votre adresse, ou le nom de votre commerce ou de ce service.',
    'belongs to the store already': 'Cette personne a déjà accès à ce commerce.',
    'was invited a moment ago': 'Cette personne vient d’être invitée.',
    'There are {} open invitations already': (max = '') =>
      `Il y a déjà ${max} invitations en attente.`,
    'Withdraw some of them first': 'Annulez-en d’abord quelques-unes.',
    'There is an account with this address: sign in':
      'Il existe déjà un compte avec cette adresse. Veuillez vous connecter.',
    'This invitation is for {}': (email = '') => `Cette invitation est destinée à ${email}.`,
    'This is the only owner of the store': 'C’est l’unique propriétaire du commerce.',
    'Make somebody else an owner first': 'Donnez d’abord ce rôle à une autre personne.',
    'Please choose a role': ROLE,
    'is not a role': ROLE,
    'is not a choice': OPTION,
    'must be one of {}': OPTION,
    'There are {} tokens already': (max = '') => `Il y a déjà ${max} jetons d’API.`,
    'Revoke tokens that are not used any more': 'Révoquez ceux qui ne servent plus.',
    'This token is used for other stores as well': 'Ce jeton sert aussi à d’autres commerces.',
    'Remove its user from this store, or have the user revoke the token':
      'Retirez la personne de ce commerce, ou demandez-lui de révoquer le jeton.',
    'must be a time zone such as Europe/Berlin': TIME_ZONE,
    'is not a known time zone': TIME_ZONE,
    'must be a language': LANGUAGE,
    'is not a language tag': LANGUAGE,
    'must be a country': COUNTRY,
    'must name at least one channel': 'Veuillez choisir au moins un canal.',
    'must be from 1 to 10 stamps for stamps_away': 'Veuillez saisir un nombre de 1 à 10.',
    'must be from 1 to 365 days for reward_unused': 'Veuillez saisir un nombre de 1 à 365.',
    'must be from 1 to 730 days for inactive': 'Veuillez saisir un nombre de 1 à 730.',
    'must be within the next {} days': () => 'Veuillez choisir un moment dans l’année qui vient.',
    'A store may send {} announcements in 24 hours': (max = '') =>
      `Seuls ${max} messages peuvent être envoyés en 24 heures.`,
    'Send it at another time': 'Veuillez l’envoyer à un autre moment.',
    'The announcement was cancelled: create another one':
      'Le message a été annulé. Veuillez en écrire un autre.',
    'The announcement is being sent already, or was sent':
      'Le message est déjà en cours d’envoi, ou a été envoyé.',
    'must be a time of day such as 21:00': 'Veuillez saisir une heure, par exemple 21:00.',
    'is required together with quiet_to': 'Veuillez remplir les deux heures, ou aucune.',
    'is required together with quiet_from': 'Veuillez remplir les deux heures, ou aucune.',
    'must differ from quiet_from': 'Veuillez saisir deux heures différentes.',
    'must be a form of address': 'Veuillez choisir l’une des formes d’adresse.',
    'is not an ISO 3166-1 country code such as DE': COUNTRY,
    'has {}, which is not a country code such as AT': (code = '') =>
      `${code} n’est pas un pays. Deux lettres pour chacun, par exemple AT.`,
    'The texts must come to at most 8 KiB together':
      'Les textes sont trop longs au total. Veuillez les raccourcir.',
    'The number of {} has reached its limit': 'Impossible d’en ajouter : la limite est atteinte.',
    'must be in the years 1 to 9999 in every time zone': 'Saisissez une date valable.',
    'must not be 0': 'Veuillez saisir 1 ou plus.',
    'This event was already reversed': 'C’est déjà annulé.',
    'This event is itself a reversal':
      'Cette entrée ne peut pas être annulée. Corrigez plutôt les tampons.',
    'Only a stamping, a redemption or an adjustment can be reversed':
      'Cette entrée ne peut pas être annulée. Corrigez plutôt les tampons.',
    'These stamps were moved by merging or unmerging customers':
      'Cette entrée ne peut pas être annulée. Corrigez plutôt les tampons.',
    'This takes {} stamps and the card holds {}': 'Il n’y a pas assez de tampons sur la carte.',
    'This reward takes {} stamps and the card holds {}':
      'Il n’y a pas assez de tampons sur la carte.',
    'This card expired at {}': 'La carte a expiré.',
    'This customer was erased': 'Cette personne a été effacée.',
    'Customer {} was merged into customer {} later':
      'Une autre fusion a suivi. Annulez-la d’abord.',
    'Customer {} was merged into customer {}': 'Ce client a été fusionné avec un autre.',
    'Customer {} is not merged into customer {}': 'Ces deux clients ne sont pas fusionnés.',
    'Customer {} would be left without an e-mail address and a phone number':
      'L’un des deux n’aurait plus ni e-mail ni téléphone.',
    'They would be one person of more than {} customers': (max) =>
      `On ne peut pas fusionner plus de ${max} clients en un seul.`,
    'One person would have more than {} cards': (max) =>
      `Une personne ne peut pas avoir plus de ${max} cartes, anciennes comprises.`,
    'is the customer itself': 'C’est le même client.',
    'This card was merged into {}': 'Ce client a été fusionné avec un autre.',
    'is a card that the customer already has': 'Le client a déjà cette carte.',
    'An e-mail address or a phone number is needed':
      'Saisissez une adresse e-mail ou un numéro de téléphone.',
    'is already used by another customer': 'Un autre client l’a déjà.',
    'must be a URL such as https://example.com/hooks, without spaces, backslashes and "#"':
      'Saisissez une adresse https publique, par exemple https://shop.example/webhooks.',
    'must not contain credentials': 'Retirez le nom d’utilisateur et le mot de passe de l’adresse.',
    'must be publicly reachable':
      'Cette adresse mène à un réseau privé. Saisissez une adresse publique.',
    'must name at least one event': 'Choisissez au moins un événement.',
    'is required (or event)': 'Choisissez au moins un événement.',
    'must be a list of {}': 'Choisissez dans la liste.',
    'flat needs exactly one named event':
      'Le format « Seulement les données » demande un seul événement. Choisissez-en un, ou l’autre format.',
    'must be an object of header names and values':
      'Écrivez chaque en-tête comme « Nom: valeur », dix au plus.',
    'must have at most {} headers': 'Écrivez chaque en-tête comme « Nom: valeur », dix au plus.',
    '{} does not belong to this store': 'Choisissez dans la liste.',
    'must be after from': 'La fin doit être après le début.',
    'must be an ISO 8601 time such as 2026-01-31T12:00:00Z': 'Saisissez une date valable.',
    'The subscription is disabled': 'Le webhook est en pause. Activez-le d’abord.',
    'Another replay of this subscription is still running':
      'Une période précédente est encore en cours d’envoi. Réessayez un peu plus tard.',
    'The event is no longer kept':
      'L’événement n’est plus conservé et ne peut donc pas être renvoyé.',
    'Other tests of this store are still running':
      'D’autres tests sont encore en cours. Réessayez dans un instant.',
    'must be less than stamps_required': 'Il en faut moins que les tampons d’une carte pleine.',
    'must be less than stamps_required ({})':
      'Il en faut moins que les tampons d’une carte pleine.',
    'must be a picture of the type {}':
      'Ce fichier n’est pas une image lisible. Choisissez un PNG, JPEG ou WebP de 2 Mo au plus.',
    'cannot be read as a picture: it must be whole, have at most {} megapixels and no more than {} scans, and be quick to decode':
      'Ce fichier n’est pas une image lisible. Choisissez un PNG, JPEG ou WebP de 2 Mo au plus.',
    'A store can upload at most {} different pictures':
      'Votre commerce a importé autant d’images que possible. Choisissez un dessin.',
  },
};
