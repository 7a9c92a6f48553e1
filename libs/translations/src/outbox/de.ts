import type { OutboxTexts } from './en.js';

export const outbox: OutboxTexts = {
  about: 'Die Links zu ihren Karten, die Kunden per E-Mail und SMS bekommen.',
  holds:
    'Einige Nachrichten wurden nicht gesendet. Beim Öffnen steht, warum, und sie lassen sich später senden.',
  none: 'Noch keine Nachrichten',
  noneWhy: 'Sie erscheinen hier, sobald jemand den Link zur Karte bekommt.',
  caption: 'Nachrichten, die neuesten zuerst',
  to: 'An',
  kind: 'Art',
  requested: 'Angefordert',
  state: 'Stand',
  show: 'Ansehen',
  showOf: (customer) => `(Nachricht an ${customer})`,
  title: (customer) => `Nachricht an ${customer}`,
  requestedOn: (channel, time) => `${channel}, angefordert am ${time}`,
  all: 'Alle Nachrichten',
  onItsWay: 'Sie ist unterwegs.',
  reference: 'Kennung beim Anbieter:',
  send: 'Jetzt senden',
  preview: 'Vorschau',
  noAddress: 'keine Adresse',
  subject: 'Betreff',
  previewWhy: 'So würde sie jetzt gesendet: Inkpad bewahrt weder die Adresse noch den Text auf.',
  channels: { email: 'E-Mail', sms: 'SMS' },
  states: {
    queued: 'Unterwegs',
    held: 'Noch nicht gesendet',
    sent: 'Gesendet',
    failed: 'Fehlgeschlagen',
    dropped: 'Nicht gesendet',
    delivered: 'Zugestellt',
    undelivered: 'Nicht zugestellt',
  },
  handedOver: {
    email: (time) => `Am ${time} dem Mailserver übergeben.`,
    sms: (time) => `Am ${time} dem SMS-Anbieter übergeben.`,
  },
  unknownArrival: 'Ob sie ankam, lässt sich nicht feststellen.',
  arrived: 'Sie ist angekommen.',
  notArrived: 'Sie konnte nicht zugestellt werden. Bitte die Nummer prüfen.',
  soon: 'Sie wird gleich gesendet.',
  retrying: (text, count) =>
    `Sie konnte noch nicht gesendet werden, nach ${count === 1 ? 'einem Versuch' : `${text} Versuchen`}. Inkpad versucht es einen Tag lang weiter.`,
  held: (reason) =>
    `Nichts wurde gesendet. Der Grund: ${reason}. Sobald sich das geändert hat, lässt sich die Nachricht hier senden.`,
  failed:
    'Sie konnte nicht gesendet werden, und Inkpad versucht es nicht noch einmal. Bitte die Adresse prüfen.',
  erased: 'Nichts wurde gesendet, weil die Daten der Person gelöscht wurden.',
  dropped: (reason) =>
    `Nichts wurde gesendet. Der Grund: ${reason}. Sobald es eine Adresse gibt, lässt sich die Nachricht senden.`,
  forAdministrator: (details) => `Für die Technik: ${details}.`,
  errorCode: (code) => `error ${code}`,
  reasons: {
    'no mail server is set up (SMTP_URL)': 'Dieser Dienst sendet noch keine E-Mails',
    'no SMS provider is set up (SMS_URL)': 'Dieser Dienst sendet noch keine SMS',
    'too many people signed up from the same network today, or at this store in all':
      'Heute haben sich zu viele aus demselben Netz oder bei diesem Geschäft angemeldet',
    'no phone number was entered when signing up':
      'Bei der Anmeldung wurde keine Telefonnummer eingegeben',
    'the store has sent too many SMS': 'Das Geschäft hat heute zu viele SMS gesendet',
    'the store sends no SMS to {} (Settings, Other countries)': (country = '') =>
      `Das Geschäft sendet keine SMS in dieses Land (${country}); in den Einstellungen lässt es sich hinzufügen`,
    'too many messages went to this address today':
      'An diese Adresse gingen heute zu viele Nachrichten',
    'there is no address': 'Es gibt keine Adresse',
    'the phone number has no country code': 'Der Telefonnummer fehlt die Ländervorwahl',
    'the phone number is of a kind that gets no SMS': 'An solche Nummern gehen keine SMS',
  },
};
