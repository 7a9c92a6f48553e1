import type { CardTranslations } from './translations-en.js';

const stamps = (text: string) => `${text} Stempel`;

export const de: CardTranslations = {
  stamps: 'Stempel',
  stampsOf: (have, need) => `${have} von ${need} Stempeln`,
  stampsBeyond: stamps,
  joined: 'Willkommen!',
  joinedWhy:
    'Ein Link zur Karte ist unterwegs. Wer hier schon eine Karte hatte, findet dort die bisherigen Stempel: dann bitte jene Karte behalten und nicht diese.',
  joinedWithoutLink:
    'An die angegebene Adresse oder Nummer lässt sich kein Link zur Karte senden. Bitte diese Seite behalten: die Karte ins Wallet legen oder die Seite speichern. Wer hier schon eine Karte hatte, fragt bitte an der Kasse danach.',
  member: 'Mitglied',
  toReward: 'Nächste Prämie in',
  stampCount: stamps,
  rewards: 'Prämien',
  ready: 'Jetzt einlösbar',
  toGo: (text) => `Noch ${stamps(text)}`,
  qrCode: (code) => `QR-Code der Karte ${code}`,
  showCode: 'Diesen Code an der Kasse zeigen',
  validUntil: (day) => `Gültig bis ${day}`,
  expired: (day) => `Diese Karte ist am ${day} abgelaufen.`,
  onYourPhone: 'Auf dem Handy',
  addToApple: 'Zu Apple Wallet hinzufügen',
  addToGoogle: 'Zu Google Wallet hinzufügen',
  notifyMe: 'Über neue Stempel benachrichtigen',
  stopNotifying: 'Nicht mehr benachrichtigen',
  notificationsBlocked:
    'Benachrichtigungen dieser Seite sind in den Einstellungen des Browsers blockiert.',
  notificationsFailed:
    'Benachrichtigungen konnten nicht eingeschaltet werden. Bitte später noch einmal versuchen.',
  install: 'Auf den Startbildschirm legen',
  installByHand:
    'Damit die Karte immer zur Hand ist: auf „Teilen“ tippen, dann auf „Zum Home-Bildschirm“.',
  offline: (when) => `Keine Verbindung. Stand der Karte: ${when}.`,
  notFound: 'Diese Karte gibt es nicht',
  notFoundWhy:
    'Vielleicht ist der Link unvollständig, oder die Karte wurde gelöscht. Bitte im Geschäft nachfragen.',
  unavailable: 'Die Karte kann gerade nicht angezeigt werden',
  unavailableWhy: 'Bitte gleich noch einmal versuchen. Die Stempel sind sicher gespeichert.',
  noticeStamped: (text) => `${stamps(text)} gesammelt`,
  noticeUnlocked: (reward) => `${reward}: jetzt einlösbar!`,
  noticeRedeemed: (reward) => `${reward}: eingelöst. Viel Freude damit!`,
};
