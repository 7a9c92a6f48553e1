import type { Translations } from './translations-en.js';

export const de: Translations = {
  intro: (card) => `„${card}“ aufs Handy holen. Ganz ohne App.`,
  firstName: 'Vorname',
  lastName: 'Nachname',
  email: 'E-Mail',
  phone: 'Telefon',
  birthday: 'Geburtstag',
  optional: 'freiwillig',
  eitherContact: 'E-Mail-Adresse oder Telefonnummer: eins von beiden genügt.',
  minimumAge: (years) => `Die Karte gibt es ab ${years} Jahren.`,
  privacy: 'Datenschutzerklärung',
  submit: 'Karte holen',
  leaveEmpty: 'Dieses Feld leer lassen',
  faults: {
    nameMissing: 'Bitte den Vornamen eingeben.',
    nameUnfit: 'Bitte einen Namen ohne Links und Adressen eingeben.',
    emailMissing: 'Bitte die E-Mail-Adresse eingeben.',
    emailUnfit: 'Bitte eine ganze Adresse eingeben, zum Beispiel anna@example.com.',
    phoneMissing: 'Bitte die Telefonnummer eingeben.',
    phoneUnfit: 'Diese Nummer kann nicht stimmen. Bitte die Ziffern prüfen.',
    phoneWithoutCountry: 'Bitte mit der Ländervorwahl beginnen, zum Beispiel +49.',
    birthdayMissing: 'Bitte den Geburtstag eingeben.',
    birthdayUnfit: 'Bitte den Geburtstag so eingeben: 1990-05-31.',
  },
  tooYoung: (years) => `Die Karte gibt es ab ${years} Jahren.`,
  formFaults: {
    marked: 'Fast geschafft. Bitte die markierten Felder ansehen.',
    contactMissing: 'Bitte eine E-Mail-Adresse oder eine Telefonnummer eingeben.',
    textsChanged: 'Die Texte neben den Kästchen wurden gerade geändert. Bitte noch einmal lesen.',
    filledTrap: 'Bitte noch einmal absenden und das Feld am Ende leer lassen.',
    stale: 'Die Seite war zu alt. Bitte noch einmal absenden.',
  },
  tooMany: (minutes, count) =>
    `Gerade melden sich hier sehr viele an. Bitte in ${minutes} ${count === 1 ? 'Minute' : 'Minuten'} noch einmal versuchen.`,
  elsewhere: 'Dieses Formular kam von einer anderen Seite',
  elsewhereWhy:
    'Zur Sicherheit wurde es nicht angenommen. Bitte den Code auf dem Poster noch einmal scannen.',
  gone: 'Dieses Poster gilt nicht mehr',
  goneWhy: 'Vielleicht ist auch der Link unvollständig. Bitte im Geschäft nach einem neuen fragen.',
  closed: 'Diese Karte wird gerade nicht ausgegeben',
  closedWhy: 'Bitte im Geschäft nachfragen. Ausgegebene Karten bleiben, wie sie sind.',
};
