import type { OutboxTexts } from './en.js';

export const outbox: OutboxTexts = {
  about: 'Les liens vers leur carte que vos clients reçoivent par e-mail et par SMS.',
  holds:
    'Certains messages n’ont pas été envoyés. Ouvrez-en un pour savoir pourquoi, et pour l’envoyer plus tard.',
  none: 'Aucun message pour l’instant',
  noneWhy: 'Ils apparaissent ici dès qu’un client reçoit le lien vers sa carte.',
  caption: 'Messages, du plus récent au plus ancien',
  to: 'À',
  kind: 'Type',
  requested: 'Demandé',
  state: 'État',
  show: 'Voir',
  showOf: (customer) => `le message à ${customer}`,
  title: (customer) => `Message à ${customer}`,
  requestedOn: (channel, time) => `${channel}, demandé le ${time}`,
  all: 'Tous les messages',
  onItsWay: 'Il est en route.',
  reference: 'Référence chez l’opérateur :',
  send: 'Envoyer maintenant',
  preview: 'Aperçu',
  noAddress: 'pas d’adresse',
  subject: 'Objet',
  previewWhy: 'Voici ce qui serait envoyé maintenant : Inkpad ne garde ni l’adresse ni le texte.',
  channels: { email: 'E-mail', sms: 'SMS' },
  states: {
    queued: 'En route',
    held: 'Pas encore envoyé',
    sent: 'Envoyé',
    failed: 'Échec',
    dropped: 'Non envoyé',
    delivered: 'Remis',
    undelivered: 'Non remis',
  },
  handedOver: {
    email: (time) => `Confié au serveur de messagerie le ${time}.`,
    sms: (time) => `Confié à l’opérateur SMS le ${time}.`,
  },
  unknownArrival: 'Inkpad ne peut pas savoir s’il est arrivé.',
  arrived: 'Il est arrivé.',
  notArrived: 'Il n’a pas pu être remis. Vérifiez le numéro du client.',
  soon: 'Il va être envoyé dans un instant.',
  retrying: (text, count) =>
    `Il n’a pas encore pu être envoyé, après ${text} ${count < 2 ? 'tentative' : 'tentatives'}. Inkpad réessaie pendant une journée.`,
  held: (reason) =>
    `Rien n’a été envoyé. La raison : ${reason}. Une fois cela changé, vous pourrez l’envoyer ici.`,
  failed: 'Il n’a pas pu être envoyé, et Inkpad ne réessaiera pas. Vérifiez l’adresse du client.',
  erased: 'Rien n’a été envoyé, car les données du client ont été effacées.',
  dropped: (reason) =>
    `Rien n’a été envoyé. La raison : ${reason}. Dès que le client a une adresse, il peut être envoyé.`,
  forAdministrator: (details) => `Pour votre administrateur : ${details}.`,
  errorCode: (code) => `error ${code}`,
  reasons: {
    'no mail server is set up (SMTP_URL)': 'ce service n’envoie pas encore d’e-mails',
    'no SMS provider is set up (SMS_URL)': 'ce service n’envoie pas encore de SMS',
    'too many people signed up from the same network today, or at this store in all':
      'trop de personnes se sont inscrites aujourd’hui depuis le même réseau, ou dans ce commerce',
    'no phone number was entered when signing up':
      'aucun numéro de téléphone n’a été saisi à l’inscription',
    'the store has sent too many SMS': 'le commerce a envoyé trop de SMS aujourd’hui',
    'the store sends no SMS to {} (Settings, Other countries)': (country = '') =>
      `le commerce n’envoie pas de SMS vers ce pays (${country}) ; vous pouvez l’ajouter dans les réglages`,
    'too many messages went to this address today':
      'trop de messages ont été envoyés à cette adresse aujourd’hui',
    'there is no address': 'il n’y a pas d’adresse',
    'the phone number has no country code': 'le numéro de téléphone n’a pas d’indicatif de pays',
    'the phone number is of a kind that gets no SMS': 'ce type de numéro ne reçoit pas de SMS',
  },
};
