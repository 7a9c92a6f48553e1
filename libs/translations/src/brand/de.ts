import type { Translations } from '../en.js';

export const brand: Translations['brand'] = {
  title: 'Marke',
  intro:
    'Ihr Logo und wie Kunden Sie erreichen: auf Karten, auch im Wallet, der Anmeldeseite, Plakaten und in Nachrichten.',
  logo: {
    title: 'Logo',
    none: 'Es gibt noch kein Logo. An seiner Stelle steht das Symbol der Stempel.',
    file: 'Bild',
    hint: 'PNG, JPEG oder WebP, höchstens 2 MB. Am besten sieht ein PNG mit durchsichtigem Hintergrund aus.',
    upload: 'Hochladen',
    replace: 'Logo ersetzen',
    remove: 'Logo entfernen',
    missing: 'Bitte ein Bild auswählen.',
    wrongType: 'Bitte ein Bild im Format PNG, JPEG oder WebP auswählen.',
  },
  colors: {
    title: 'Farben aus dem Logo',
    why: 'Drei Vorschläge für eine Karte. Jede Farbe lässt sich später ändern.',
    choose: 'Vorschlag',
    names: ['Kräftig', 'Hell', 'Dunkel'],
    card: 'Karte',
    apply: 'Diese Farben verwenden',
    missing: 'Bitte einen der Vorschläge auswählen.',
  },
  contact: {
    why: 'Auf der Rückseite der Karte im Wallet und unter der Karte im Browser. Leere Felder werden nicht gezeigt.',
    optional: 'freiwillig',
    hints: {
      website: 'Zum Beispiel cafe.example',
      address: 'Darf mehrere Zeilen haben.',
      terms_text: 'Was Kunden wissen sollten, zum Beispiel „ein Stempel für jedes Getränk“.',
    },
    save: 'Speichern',
  },
  done: {
    logo: 'Das Logo wird ab jetzt verwendet.',
    removed: 'Das Logo wurde entfernt.',
    colors: 'Die Karte hat ihre neuen Farben.',
    contact: 'Gespeichert.',
  },
};
