import type { Translations } from '../en.js';

export const overview: Translations['overview'] = {
  today: 'Heute',
  allNumbers: 'Alle Zahlen',
  waiting: 'Wartet auf Sie',
  messages: (text, count) =>
    `${text} ${count === 1 ? 'Nachricht wurde' : 'Nachrichten wurden'} nicht gesendet`,
  messagesWhy: 'Links zu Karten, die Kunden nicht bekommen haben',
  rewards: (text, count) => `${text} ${count === 1 ? 'Prämie ist' : 'Prämien sind'} einlösbar`,
  rewardsWhy: 'Kunden können jederzeit danach fragen',
  imports: (text, count) => `${text} ${count === 1 ? 'Import ist' : 'Importe sind'} startbereit`,
  importsWhy: 'Geprüft, aber noch nicht importiert',
  setUp: 'Geschäft einrichten',
  progress: (done, all) => `${done} von ${all} erledigt`,
  done: 'Erledigt',
  steps: {
    card: {
      title: 'Erste Karte erstellen',
      text: 'Wählen Sie Farben, Stempel und wofür es sie gibt.',
    },
    reward: { title: 'Prämie hinzufügen', text: 'Was Kunden für ihre Stempel bekommen.' },
    logo: { title: 'Logo hinzufügen', text: 'Es erscheint auf Karten, Plakaten und E-Mails.' },
    location: {
      title: 'Ersten Standort hinzufügen',
      text: 'Handys zeigen die Karte in seiner Nähe an.',
    },
    poster: {
      title: 'Plakat drucken',
      text: 'Kunden scannen es und haben die Karte auf dem Handy.',
    },
    team: { title: 'Team einladen', text: 'Alle melden sich mit eigenem Namen an.' },
    customer: {
      title: 'Ersten Kunden begrüßen',
      text: 'Mit dem Plakat, an der Theke oder durch den Import einer Datei.',
    },
  },
  go: 'Los',
  operator: 'Was die Betreiberin oder der Betreiber ergänzen kann',
  operatorWhy: 'Das können Sie nicht selbst tun. Fragen Sie, wer Inkpad für Sie betreibt.',
  services: {
    mail: 'E-Mail: Links zu Karten und neue Passwörter werden per E-Mail gesendet',
    sms: 'SMS: Links zu Karten werden per SMS gesendet',
    apple: 'Apple Wallet: Karten lassen sich aufs iPhone laden',
    google: 'Google Wallet: Karten lassen sich auf Android-Handys laden',
  },
  serviceMissing: 'Nicht eingerichtet',
  pages: 'Alle Seiten',
  empty: 'Hier gibt es nichts zu verwalten',
  emptyWhy: 'Mehr Rechte vergibt die Inhaberin oder der Inhaber.',
};
