import type { Translations } from '../en.js';

export const locationPages: Translations['locationPages'] = {
  title: 'Standorte',
  about:
    'Handys können die Karte zeigen, wenn jemand in der Nähe einer Ihrer Filialen ist. Dafür brauchen sie die genaue Stelle auf der Karte.',
  add: 'Standort hinzufügen',
  none: 'Noch keine Standorte',
  noneWhy: 'Mit einem Standort zeigen Handys die Karte, wenn jemand in der Nähe ist.',
  columns: { name: 'Name', address: 'Adresse', map: 'Auf der Karte' },
  actions: 'Aktionen',
  edit: 'Bearbeiten',
  editOf: (name) => `${name} bearbeiten`,
  states: {
    pinned: 'Markiert',
    found: 'Gefunden',
    needsPin: 'Braucht eine Markierung',
    lookingUp: 'Wird gesucht',
    notFound: 'Nicht gefunden',
  },
  explanations: {
    found:
      'Die Adresse wurde gefunden. Bitte auf der Karte ansehen und bestätigen, wenn die Stelle stimmt.',
    town: 'Nur der Ort wurde gefunden. Mit einer Markierung zeigen Handys die Karte in der Nähe der Filiale.',
    lookingUp:
      'Die Adresse wird gesucht. Das braucht niemand abzuwarten: eine Markierung ist genauer.',
    notFound:
      'Die Adresse wurde nicht gefunden. Mit einer Markierung zeigen Handys die Karte in der Nähe der Filiale.',
  },
  newTitle: 'Neuer Standort',
  details: 'Name und Adresse',
  name: 'Name',
  nameHint: 'Etwa „Altstadt“. Kunden sehen ihn auf dem Handy.',
  address: 'Adresse',
  addressHint: 'Straße, Postleitzahl, Ort und Land.',
  addressChanges: 'Mit einer anderen Adresse entfällt die Markierung.',
  save: 'Speichern',
  create: 'Standort anlegen',
  pin: 'Auf der Karte',
  pinWhy: 'Gerade in der Filiale? Dann genügt ein Tippen:',
  here: 'Meinen Standort verwenden',
  locating: 'Der Standort wird bestimmt …',
  hereFailed:
    'Dieses Gerät hat seinen Standort nicht mitgeteilt. Bitte im Browser erlauben oder den Link einer Karte einfügen.',
  link: 'Link einer Karte',
  linkHint: 'Von Google Maps, Apple Karten oder OpenStreetMap. Auch „53.5503, 9.9929“ geht.',
  findOn: (map) => `Die Filiale auf ${map} suchen`,
  numbers: 'Mehr: Zahlen eingeben',
  latitude: 'Breite',
  longitude: 'Länge',
  setPin: 'Markierung setzen',
  changePin: 'Markierung ändern',
  confirmPin: 'Markierung bestätigen',
  seePin: 'Die Markierung auf der Karte ansehen',
  far: (distance, address) => `Diese Stelle ist ${distance} von ${address} entfernt. Stimmt sie?`,
  farNow: (distance) =>
    `Die Markierung ist ${distance} von der Adresse entfernt. Bitte prüfen, ob beide stimmen.`,
  setAnyway: 'Ja, dort setzen',
  removePin: 'Markierung entfernen',
  remove: 'Standort entfernen',
  removeAsk: 'Diesen Standort entfernen?',
  removeText:
    'In seiner Nähe erscheinen keine Karten mehr, und Kassen können ihn nicht mehr angeben. Im Verlauf bleibt er.',
  removeYes: 'Entfernen',
  keep: 'Behalten',
  removePinAsk: 'Diese Markierung entfernen?',
  removePinText:
    'Die Adresse wird neu gesucht. Wird nur der Ort gefunden, zeigen Handys in der Nähe der Filiale keine Karten mehr.',
  removePinYes: 'Markierung entfernen',
  back: 'Alle Standorte',
  done: {
    created: 'Der Standort ist angelegt. Nun die Markierung setzen.',
    saved: 'Gespeichert.',
    pinned: 'Die Markierung ist gesetzt.',
    unpinned: 'Die Markierung ist entfernt.',
    removed: 'Der Standort ist entfernt.',
  },
  rejected: 'Noch nicht gespeichert. Bitte die rot markierten Felder prüfen.',
  limitReached:
    'Mehr Standorte sind nicht möglich. Bitte wenden Sie sich an die Person, die diesen Dienst betreibt.',
  errors: {
    name: 'Bitte einen Namen mit höchstens 255 Zeichen eingeben',
    address: 'Bitte eine Adresse mit höchstens 500 Zeichen eingeben',
    place: 'Bitte den Link einer Karte einfügen oder zwei Zahlen wie 53.5503, 9.9929',
  },
  credits: {
    offline: 'Orte: GeoNames (geonames.org), CC BY 4.0',
    server: 'Adressen: © OpenStreetMap-Mitwirkende',
  },
};
