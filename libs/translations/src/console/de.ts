import type { Translations } from '../en.js';

export const console: Translations['console'] = {
  skip: 'Zum Inhalt springen',
  you: 'Ihr Konto',
  signOut: 'Abmelden',
  menu: 'Menü',
  overview: 'Überblick',
  stores: 'Ihre Geschäfte',
  navigation: {
    cards: { title: 'Karten', about: 'Gestaltung, Prämien, Grenzen' },
    customers: { title: 'Kunden', about: 'Personen finden, Stempel berichtigen' },
    locations: { title: 'Standorte', about: 'Ihre Filialen auf der Karte' },
    posters: { title: 'Plakate', about: 'Zum Drucken und Aufhängen' },
    messages: { title: 'Nachrichten', about: 'An Kunden gesendete Links' },
    numbers: { title: 'Zahlen', about: 'Wie Ihr Geschäft läuft' },
    transfers: { title: 'Import und Export', about: 'Dateien hinein und hinaus' },
    users: { title: 'Team', about: 'Wer sich hier anmelden kann' },
    tokens: { title: 'API-Tokens', about: 'Für Kassen und Webshops' },
    webhooks: { title: 'Webhooks', about: 'Ereignisse für andere Systeme' },
    brand: { title: 'Marke', about: 'Logo, Farben, Kontakt' },
    settings: { title: 'Einstellungen', about: 'Name, Sprache, Anmeldung' },
    history: { title: 'Verlauf', about: 'Alles, was geschehen ist' },
    audit: { title: 'Protokoll', about: 'Änderungen an Team und Tokens' },
  },
};
