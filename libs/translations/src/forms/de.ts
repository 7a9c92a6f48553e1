import type { FormTexts } from './en.js';

const INVISIBLE = 'Bitte unsichtbare Zeichen entfernen. Sie kommen oft beim Kopieren mit.';
const REQUIRED = 'Bitte dieses Feld ausfüllen.';
const EMAIL = 'Bitte eine vollständige E-Mail-Adresse eingeben, zum Beispiel name@laden.example.';
const RANGE = (min = '', max = '') => `Bitte eine Zahl von ${min} bis ${max} eingeben.`;
const HTTPS = 'Bitte eine Adresse eingeben, die mit https:// beginnt.';
const ROLE = 'Bitte eine Rolle wählen.';
const OPTION = 'Bitte eine der Möglichkeiten wählen.';
const TIME_ZONE = 'Bitte eine Zeitzone wählen.';
const LANGUAGE = 'Bitte eine Sprache wählen.';
const COUNTRY = 'Bitte ein Land wählen.';

export const forms: FormTexts = {
  optional: 'freiwillig',
  show: 'Anzeigen',
  hide: 'Verbergen',
  showPassword: 'Passwort anzeigen',
  hidePassword: 'Passwort verbergen',
  copy: 'Kopieren',
  copied: 'Kopiert',
  share: 'Teilen',
  check: (text, count) => (count === 1 ? 'Bitte ein Feld prüfen' : `Bitte ${text} Felder prüfen`),
  errorsInTitle: (text) => `${text} Fehler`,
  other: (message) => `Das wurde nicht angenommen (it ${message}).`,
  notFound: 'Das gibt es nicht mehr. Bitte die Seite neu laden.',
  messages: {
    'is required': REQUIRED,
    'must not be blank': REQUIRED,
    'must have 1 to {} characters': (max = '') => `Bitte 1 bis ${max} Zeichen eingeben.`,
    'must have at least {} characters': (min = '') => `Bitte mindestens ${min} Zeichen verwenden.`,
    'must have at most {} characters': (max = '') => `Bitte höchstens ${max} Zeichen verwenden.`,
    'must not contain control or invisible characters': INVISIBLE,
    'may have only {} in braces': (list) => `In geschweiften Klammern bitte nur ${list} schreiben.`,
    'must not contain NUL': INVISIBLE,
    'must be a string': 'Bitte einen Text eingeben.',
    'must be a number': 'Bitte eine Zahl eingeben.',
    'must be an integer': 'Bitte eine ganze Zahl eingeben.',
    'must be from {} to {}': RANGE,
    'must be between {} and {}': RANGE,
    'must be at least {}': (min = '') => `Bitte ${min} oder mehr eingeben.`,
    'must be at most {}': (max = '') => `Bitte ${max} oder weniger eingeben.`,
    'must be in the future': 'Bitte einen Zeitpunkt in der Zukunft wählen.',
    'must not be in the future': 'Das liegt in der Zukunft. Bitte prüfen.',
    'is not an e-mail address': EMAIL,
    'must be an e-mail address': EMAIL,
    'must be a phone number': 'Das ist keine Telefonnummer. Bitte prüfen.',
    'looks like a spreadsheet has changed it':
      'Eine Tabellenkalkulation hat diese Nummer verändert. Bitte neu eingeben.',
    'must be a phone number such as +49 721 123456':
      'Bitte eine Telefonnummer eingeben, etwa +49 721 123456.',
    'must be a web address such as https://cafe.example, without spaces and "#"':
      'Bitte eine Webadresse eingeben, etwa https://cafe.example.',
    'must be an e-mail address such as hello@cafe.example':
      'Bitte eine vollständige E-Mail-Adresse eingeben, etwa name@shop.example.',
    'must be a real date such as 1990-05-31': 'Dieses Datum gibt es nicht. Bitte prüfen.',
    'must be a colour such as #6B4226': 'Bitte eine Farbe wählen.',
    'must begin with https://': HTTPS,
    'must start with https://': HTTPS,
    'must be an address that begins with https://, without spaces, backslashes and "#"':
      'Bitte eine Adresse eingeben, die mit https:// beginnt, ohne Leerzeichen, umgekehrte Schrägstriche und „#“.',
    'is used by another user': 'Mit dieser Adresse meldet sich schon jemand anderes an.',
    'is wrong': 'Das ist falsch. Bitte noch einmal versuchen.',
    'must be another one than your first password':
      'Bitte ein anderes Passwort wählen als das, das Sie bekommen haben.',
    'is wrong. Sign in with your company again: then no password is asked for within ten minutes':
      'Das ist falsch. Wer sich über die Firma anmeldet, hat hier vielleicht kein Passwort. Bitte noch einmal über die Firma anmelden: Zehn Minuten lang braucht es dann kein Passwort.',
    'is wrong. Wait for the next one, and check that the clock of your phone is right':
      'Dieser Code ist falsch. Bitte den nächsten abwarten und prüfen, ob die Uhr des Handys richtig geht.',
    'was changed too often. Try again in an hour':
      'Die Adresse wurde zu oft geändert. Bitte in einer Stunde noch einmal versuchen.',
    'has received too many e-mails today. Try again tomorrow':
      'Diese Adresse hat heute zu viele E-Mails bekommen. Bitte morgen noch einmal versuchen.',
    'is too easy to guess: use characters that do not repeat or follow one another':
      'Das ist zu leicht zu erraten. Bitte keine Zeichen, die sich wiederholen oder aufeinander folgen.',
    'is too easy to guess, since many people use it or one like it: use several words that do not belong together':
      'Das ist zu leicht zu erraten, weil viele es benutzen. Tipp: ein paar zufällige Wörter.',
    'is too easy to guess: use more than your name, your address, the name of your store or of this service':
      'Das ist zu leicht zu erraten. Bitte mehr als den eigenen Namen, die Adresse oder den Namen des Geschäfts oder dieses Dienstes verwenden.',
    'belongs to the store already': 'Diese Person hat schon Zugang zu diesem Geschäft.',
    'was invited a moment ago': 'Diese Person wurde gerade eben eingeladen.',
    'There are {} open invitations already': (max = '') =>
      `Es gibt schon ${max} offene Einladungen.`,
    'Withdraw some of them first': 'Bitte zuerst einige zurückziehen.',
    'There is an account with this address: sign in':
      'Es gibt schon ein Konto mit dieser Adresse. Bitte anmelden.',
    'This invitation is for {}': (email = '') => `Diese Einladung ist für ${email}.`,
    'This is the only owner of the store':
      'Das ist die einzige Inhaberin oder der einzige Inhaber.',
    'Make somebody else an owner first': 'Bitte zuerst jemand anderem diese Rolle geben.',
    'Please choose a role': ROLE,
    'is not a role': ROLE,
    'is not a choice': OPTION,
    'must be one of {}': OPTION,
    'There are {} tokens already': (max = '') => `Es gibt schon ${max} API-Tokens.`,
    'Revoke tokens that are not used any more':
      'Bitte solche widerrufen, die nicht mehr gebraucht werden.',
    'This token is used for other stores as well':
      'Dieses Token wird auch für andere Geschäfte benutzt.',
    'Remove its user from this store, or have the user revoke the token':
      'Bitte die Person aus diesem Geschäft entfernen, oder sie bitten, das Token zu widerrufen.',
    'must be a time zone such as Europe/Berlin': TIME_ZONE,
    'is not a known time zone': TIME_ZONE,
    'must be a language': LANGUAGE,
    'is not a language tag': LANGUAGE,
    'must be a country': COUNTRY,
    'must name at least one channel': 'Bitte mindestens einen Weg wählen.',
    'must be from 1 to 10 stamps for stamps_away': 'Bitte eine Zahl von 1 bis 10 eingeben.',
    'must be from 1 to 365 days for reward_unused': 'Bitte eine Zahl von 1 bis 365 eingeben.',
    'must be from 1 to 730 days for inactive': 'Bitte eine Zahl von 1 bis 730 eingeben.',
    'must be within the next {} days': () => 'Bitte eine Zeit innerhalb eines Jahres wählen.',
    'A store may send {} announcements in 24 hours': (max = '') =>
      `In 24 Stunden können nur ${max} Nachrichten gesendet werden.`,
    'Send it at another time': 'Bitte zu einer anderen Zeit senden.',
    'The announcement was cancelled: create another one':
      'Die Nachricht wurde zurückgezogen. Bitte eine neue schreiben.',
    'The announcement is being sent already, or was sent':
      'Die Nachricht wird schon gesendet oder wurde gesendet.',
    'must be a time of day such as 21:00': 'Bitte eine Uhrzeit eingeben, zum Beispiel 21:00.',
    'is required together with quiet_to': 'Bitte beide Zeiten eingeben oder keine.',
    'is required together with quiet_from': 'Bitte beide Zeiten eingeben oder keine.',
    'must differ from quiet_from': 'Bitte zwei verschiedene Zeiten eingeben.',
    'must be a form of address': 'Bitte eine der Anreden wählen.',
    'is not an ISO 3166-1 country code such as DE': COUNTRY,
    'has {}, which is not a country code such as AT': (code = '') =>
      `${code} ist kein Land. Bitte je zwei Buchstaben, zum Beispiel AT.`,
    'The texts must come to at most 8 KiB together':
      'Die Texte sind zusammen zu lang. Bitte kürzen.',
    'The number of {} has reached its limit': 'Mehr geht nicht: Die Obergrenze ist erreicht.',
    'must be in the years 1 to 9999 in every time zone': 'Bitte ein gültiges Datum eingeben.',
    'must not be 0': 'Bitte 1 oder mehr eingeben.',
    'This event was already reversed': 'Das wurde schon rückgängig gemacht.',
    'This event is itself a reversal':
      'Dieser Eintrag lässt sich nicht rückgängig machen. Die Stempel lassen sich stattdessen berichtigen.',
    'Only a stamping, a redemption or an adjustment can be reversed':
      'Dieser Eintrag lässt sich nicht rückgängig machen. Die Stempel lassen sich stattdessen berichtigen.',
    'These stamps were moved by merging or unmerging customers':
      'Dieser Eintrag lässt sich nicht rückgängig machen. Die Stempel lassen sich stattdessen berichtigen.',
    'This takes {} stamps and the card holds {}': 'Dafür sind nicht genug Stempel auf der Karte.',
    'This reward takes {} stamps and the card holds {}':
      'Dafür sind nicht genug Stempel auf der Karte.',
    'This card expired at {}': 'Die Karte ist abgelaufen.',
    'This customer was erased': 'Diese Person wurde gelöscht.',
    'Customer {} was merged into customer {} later':
      'Danach wurde noch einmal zusammengeführt. Bitte zuerst das rückgängig machen.',
    'Customer {} was merged into customer {}':
      'Dieser Eintrag wurde mit einem anderen zusammengeführt.',
    'Customer {} is not merged into customer {}': 'Diese beiden sind nicht zusammengeführt.',
    'Customer {} would be left without an e-mail address and a phone number':
      'Dann bliebe jemand ohne E-Mail-Adresse und Telefonnummer.',
    'They would be one person of more than {} customers': (max) =>
      `Mehr als ${max} Einträge lassen sich nicht zu einem zusammenführen.`,
    'One person would have more than {} cards': (max) =>
      `Mehr als ${max} Karten kann eine Person nicht haben, alte mitgezählt.`,
    'is the customer itself': 'Das ist derselbe Eintrag.',
    'This card was merged into {}': 'Dieser Eintrag wurde mit einem anderen zusammengeführt.',
    'is a card that the customer already has': 'Diese Karte ist schon ausgegeben.',
    'An e-mail address or a phone number is needed':
      'Bitte eine E-Mail-Adresse oder eine Telefonnummer eingeben.',
    'is already used by another customer': 'Das gehört schon zu einem anderen Kunden.',
    'must be a URL such as https://example.com/hooks, without spaces, backslashes and "#"':
      'Bitte eine öffentliche https-Adresse eingeben, etwa https://shop.example/webhooks.',
    'must not contain credentials': 'Bitte Benutzername und Passwort aus der Adresse entfernen.',
    'must be publicly reachable':
      'Diese Adresse führt in ein privates Netz. Bitte eine öffentliche Adresse eingeben.',
    'must name at least one event': 'Bitte mindestens ein Ereignis auswählen.',
    'is required (or event)': 'Bitte mindestens ein Ereignis auswählen.',
    'must be a list of {}': 'Bitte aus der Liste auswählen.',
    'flat needs exactly one named event':
      'Das Format „Nur die Daten“ braucht genau ein Ereignis. Bitte eines oder das andere Format wählen.',
    'must be an object of header names and values':
      'Bitte jeden Header als „Name: Wert“ schreiben, höchstens zehn.',
    'must have at most {} headers':
      'Bitte jeden Header als „Name: Wert“ schreiben, höchstens zehn.',
    '{} does not belong to this store': 'Bitte aus der Liste auswählen.',
    'must be after from': 'Das Ende muss nach dem Anfang liegen.',
    'must be an ISO 8601 time such as 2026-01-31T12:00:00Z': 'Bitte ein gültiges Datum eingeben.',
    'The subscription is disabled': 'Der Webhook ist pausiert. Bitte zuerst einschalten.',
    'Another replay of this subscription is still running':
      'Ein früherer Zeitraum wird noch gesendet. Bitte später noch einmal versuchen.',
    'The event is no longer kept':
      'Das Ereignis wird nicht mehr aufbewahrt und lässt sich deshalb nicht erneut senden.',
    'Other tests of this store are still running':
      'Andere Tests laufen noch. Bitte gleich noch einmal versuchen.',
    'must be less than stamps_required':
      'Das müssen weniger sein als die Stempel einer vollen Karte.',
    'must be less than stamps_required ({})':
      'Das müssen weniger sein als die Stempel einer vollen Karte.',
    'must be a picture of the type {}':
      'Diese Datei ist kein lesbares Bild. Bitte ein PNG, JPEG oder WebP mit höchstens 2 MB wählen.',
    'cannot be read as a picture: it must be whole, have at most {} megapixels and no more than {} scans, and be quick to decode':
      'Diese Datei ist kein lesbares Bild. Bitte ein PNG, JPEG oder WebP mit höchstens 2 MB wählen.',
    'A store can upload at most {} different pictures':
      'Mehr Bilder darf Ihr Geschäft nicht hochladen. Bitte eine Zeichnung wählen.',
  },
};
