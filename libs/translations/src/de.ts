import { cardPages } from './card-pages/de.js';
import { brand } from './brand/de.js';
import { console } from './console/de.js';
import { locationPages } from './location-pages/de.js';
import { posterConsole } from './poster-console/de.js';
import { customerPages } from './customer-pages/de.js';
import { webhookPages } from './webhook-pages/de.js';
import { numbers } from './numbers/de.js';
import { overview } from './overview/de.js';
import { transfers } from './transfer-pages/de.js';
import { counter } from './counter/de.js';
import type { Translations } from './en.js';
import { forms } from './forms/de.js';
import { holderMessages } from './holder-messages/de.js';
import { messagePages } from './message-pages/de.js';
import { outbox } from './outbox/de.js';
import { signIn } from './sign-in/de.js';

const stamps = (text: string) => `${text} Stempel`;

export const de: Translations = {
  stamps: {
    label: 'Stempel',
    count: stamps,
    added: (text) => `${stamps(text)} gesammelt`,
  },
  wallet: {
    rewards: 'Prämien',
    reward: (name, text) => `${name}: ${text} Stempel`,
    moreRewards: (text, count) =>
      `Und ${text} weitere ${count === 1 ? 'Prämie' : 'Prämien'} auf der Seite der Karte.`,
  },
  contact: {
    title: 'Kontakt',
    website: 'Website',
    phone: 'Telefon',
    email: 'E-Mail',
    address: 'Adresse',
    terms: 'Bedingungen',
  },
  card: {
    stampsOf: (have, need) => `${have} von ${need} Stempeln`,
    full: (text, cards) => (cards === 1 ? 'Die Karte ist voll' : `${text} volle Karten`),
    surplus: (text, cards, have, need) =>
      `${text} volle ${cards === 1 ? 'Karte' : 'Karten'} und ${have} von ${need}`,
    rewardReady: 'Die Prämie ist da',
    rewardsReady: 'Die Prämien sind da',
    howToRedeem: 'Den Code an der Kasse zeigen und sagen, was es sein darf.',
    uses: (text) => `verbraucht ${stamps(text)}`,
    costs: stamps,
    enjoy: 'Viel Freude damit!',
    redeemedNow: (reward) => `${reward}: gerade eingelöst.`,
    enlarge: 'Code vergrößern',
    close: 'Schließen',
    notNow: 'Jetzt nicht',
    about: (store) => `Stempelkarte von ${store}`,
    joined: 'Willkommen!',
    joinedWhy:
      'Ein Link zur Karte ist unterwegs. Hier schon einmal Stempel gesammelt? Einfach trotzdem diesen Code zeigen: An der Kasse finden sich die Stempel wieder.',
    joinedWithoutLink:
      'Ein Link zu dieser Karte lässt sich nicht senden: Am besten die Karte gleich ins Wallet legen oder diese Seite speichern. Hier schon einmal Stempel gesammelt? Einfach trotzdem diesen Code zeigen: An der Kasse finden sich die Stempel wieder.',
    member: 'Mitglied',
    toReward: 'Nächste Prämie in',
    rewards: 'Prämien',
    ready: 'Jetzt einlösbar',
    toGo: (text) => `Noch ${stamps(text)}`,
    barcode: (code) => `Strichcode der Karte ${code}`,
    qrCode: (code) => `QR-Code der Karte ${code}`,
    showCode: 'Diesen Code an der Kasse zeigen',
    validUntil: (day) => `Gültig bis ${day}`,
    expired: (day) => `Diese Karte ist am ${day} abgelaufen. An der Kasse gibt es eine neue.`,
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
      'Vielleicht ist der Link unvollständig, oder die Karte wurde gelöscht. Bitte den Link in der Nachricht noch einmal öffnen, oder im Geschäft das Plakat für eine neue Karte scannen.',
  },
  notice: {
    toReward: (text, _, reward) => `Noch ${stamps(text)} bis zur Prämie: ${reward}.`,
    toFullCard: (text) => `Noch ${stamps(text)} bis zur vollen Karte.`,
    unlocked: (reward) => `Die Prämie ist da: ${reward}.`,
    redeemed: (reward) => `Prämie eingelöst: ${reward}. Viel Freude damit!`,
  },
  applePass: {
    member: 'Mitglied',
    toReward: 'Noch',
    store: 'Geschäft',
    card: 'Karte',
    openPage: 'Karte im Browser öffnen',
    news: 'Neuigkeiten',
    balance: (text) => `Du hast ${text} Stempel.`,
    available: 'liegt für dich bereit',
    expires: 'Gültig bis',
    shops: 'Filialen',
    void: 'Diese Karte ist nicht mehr gültig.',
    description: (card, store) => `Stempelkarte „${card}“ von ${store}`,
  },
  googlePass: {
    member: 'Mitglied',
    code: 'Kartencode',
    toReward: 'Bis zur Prämie',
    ready: 'Einlösbar',
    unlocked: 'Prämie erreicht',
    page: 'Karte im Browser',
  },
  cardMessage: {
    subject: (store) => `Deine Stempelkarte von ${store}`,
    intro: (store) => `Hier ist deine Stempelkarte von ${store}.`,
    open: 'Meine Karte öffnen',
    advice:
      'Öffne sie auf deinem Handy, um sie zu Apple Wallet oder Google Wallet hinzuzufügen, oder nutze sie direkt im Browser. Gib den Link nicht weiter: Wer ihn hat, kann deine Karte vorzeigen.',
    why: (store) =>
      `Du bekommst diese E-Mail, weil deine Adresse für eine Stempelkarte von ${store} angegeben wurde. Falls du das nicht warst, brauchst du nichts zu tun.`,
    sms: (store, link) => `Deine Stempelkarte von ${store}: ${link}`,
  },
  failingMail: {
    dates: 'de',
    warning: {
      subject: (store, host) => `${store}: Webhooks an ${host} kommen nicht an`,
      intro: (host, since, disabledAt) =>
        `Nichts, was an ${host} gesendet wurde, ist${since} angenommen worden.\nBleibt es dabei, wird das Abonnement am ${disabledAt} abgeschaltet.`,
      sendAgain:
        '- Senden Sie das Versäumte noch einmal; der erste Erfolg hält das Abonnement am Leben:',
    },
    disabled: {
      subject: (store, host) => `${store}: Webhooks an ${host} wurden abgeschaltet`,
      intro: (host, disabledAt, reason) =>
        `Das Webhook-Abonnement an ${host} wurde am ${disabledAt} abgeschaltet. ${reason}.\nDorthin wird nichts mehr gesendet.`,
      sendAgain: '- Senden Sie das Versäumte noch einmal:',
    },
    since: (time) => ` seit ${time}`,
    blockedReason: 'Der Name in der URL führt zu keiner öffentlichen Adresse',
    failingReason: (since) => `Es wurde${since} nichts angenommen`,
    store: (name) => `Geschäft: ${name}`,
    subscription: (name) => `Webhook-Abonnement: ${name}`,
    lastResponse: (status) => `Letzte Antwort: ${status ?? 'keine'}`,
    lastError: (error) => `Letzter Fehler: ${error}`,
    steps: 'Was zu tun ist:',
    checkName: '- Sorgen Sie dafür, dass der Name zur Adresse des Empfängers führt.',
    checkReceiver: '- Sorgen Sie dafür, dass der Empfänger binnen zehn Sekunden mit 2xx antwortet.',
    test: (request) => `- Probieren Sie es aus: ${request}`,
    enable: (request) => `- Schalten Sie es wieder ein: ${request}`,
  },
  retirementMail: {
    dates: 'de',
    subject: (host, version, end) =>
      `${host}: Version ${version} der API ${end === null ? 'wird abgeschaltet' : `endet am ${end}`}`,
    reminder: (subject) => `Erinnerung: ${subject}`,
    greeting: (name) => `Guten Tag ${name},`,
    intro: (version, url) => `Version ${version} der API unter ${url} wird abgeschaltet.`,
    deprecatedFrom: (day) => `Veraltet ab: ${day}`,
    end: (day, time, url) =>
      `Endet am: ${day}, ${time} UTC\n\nAb dann wird jede Anfrage an ${url} mit 410 und dem Code\nversion_sunset beantwortet.`,
    noEnd: 'Endet am: noch nicht entschieden. Dann erhalten Sie noch eine Mail.',
    tokens: (days) =>
      `In den letzten ${days} Tagen wurde sie mit diesen API-Tokens von Ihnen benutzt:`,
    token: (name, day) => `- ${name}, zuletzt am ${day}`,
    otherTokens: '- und anderen',
    steps: (url) => `Was zu tun ist:
- Finden Sie die Programme, die diese Tokens benutzen, und stellen Sie sie rechtzeitig um.
- Wie Versionen enden und wie es steht: ${url}/docs/versioning
- Ihre Tokens: ${url}/app`,
  },
  signup: {
    intro: (card) => `„${card}“ aufs Handy holen – ganz ohne App.`,
    offer: (text) => `für ${stamps(text)}`,
    welcome: (text) => `Los geht es mit ${stamps(text)}.`,
    preview: (card) => `Die Karte „${card}“`,
    day: 'Tag',
    month: 'Monat',
    year: 'Jahr',
    already: 'Diese Karte ist schon da',
    alreadyWhy: (card) => `Auf diesem Handy gibt es „${card}“ schon.`,
    openCard: 'Meine Karte öffnen',
    someoneElse: 'Jemand anderen anmelden',
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
    fieldErrors: {
      nameMissing: 'Bitte den Vornamen eingeben.',
      nameUnfit: 'Bitte einen Namen ohne Links und Adressen eingeben.',
      emailMissing: 'Bitte die E-Mail-Adresse eingeben.',
      emailUnfit: 'Bitte eine ganze Adresse eingeben, zum Beispiel anna@example.com.',
      phoneMissing: 'Bitte die Telefonnummer eingeben.',
      phoneUnfit: 'Diese Nummer kann nicht stimmen. Bitte die Ziffern prüfen.',
      phoneWithoutCountry: 'Bitte mit der Ländervorwahl beginnen, zum Beispiel +49.',
      birthdayMissing: 'Bitte den Geburtstag eingeben.',
      birthdayUnfit: 'Bitte Tag, Monat und Jahr in Zahlen eingeben, zum Beispiel 31, 5 und 1990.',
      birthdayFuture: 'Dieser Tag liegt noch in der Zukunft. Bitte das Jahr prüfen.',
    },
    formErrors: {
      marked: 'Bitte die rot markierten Felder prüfen.',
      contactMissing: 'Bitte eine E-Mail-Adresse oder eine Telefonnummer eingeben.',
      textsChanged: 'Die Texte neben den Kästchen wurden gerade geändert. Bitte noch einmal lesen.',
      filledTrap: 'Bitte noch einmal absenden und das Feld am Ende leer lassen.',
      stale: 'Die Seite war zu alt. Bitte noch einmal absenden.',
    },
    tooMany: (minutes, count) =>
      `Gerade melden sich hier sehr viele an. Bitte in ${minutes} ${count === 1 ? 'Minute' : 'Minuten'} noch einmal versuchen.`,
    elsewhere: 'Dieses Formular kam von einer anderen Seite',
    elsewhereWhy:
      'Zur Sicherheit wurde es nicht angenommen. Bitte den Code auf dem Plakat noch einmal scannen.',
    gone: 'Dieses Plakat gilt nicht mehr',
    goneWhy:
      'Vielleicht ist auch der Link unvollständig. Bitte im Geschäft nach einem neuen fragen.',
    closed: 'Diese Karte wird gerade nicht ausgegeben',
    closedWhy: 'Bitte im Geschäft nachfragen. Ausgegebene Karten bleiben, wie sie sind.',
  },
  poster: {
    stampCard: 'Stempelkarte',
    offer: (text) => `für ${text} Stempel`,
    collect: (text) => `${text} Stempel sammeln`,
    scan: 'Scannen und Stempelkarte holen',
    signUp: 'Stempelkarte holen',
    download: 'Plakat zum Drucken',
    otherSizes: 'Andere Größen',
    paperSize: 'Papier',
    withBleed: 'PDF mit Anschnitt und Schnittmarken',
  },
  history: {
    issued: 'Karte ausgestellt',
    welcome: (text) => `${stamps(text)} zur Begrüßung`,
    credited: (text) => `Korrektur: ${stamps(text)} gutgeschrieben`,
    removed: (text) => `Korrektur: ${stamps(text)} abgezogen`,
    unlocked: (reward) => `Prämie „${reward}“ freigeschaltet`,
    redeemed: (reward, text) => `Prämie „${reward}“ für ${stamps(text)} eingelöst`,
    moved: 'Karte an einen anderen Kunden übergeben',
    merged: 'Karte mit einer anderen zusammengelegt, die weitergilt',
    absorbed: 'eine andere Karte mit dieser zusammengelegt',
    unmerged: 'Zusammenlegung von Karten rückgängig gemacht',
    earlier: (text, count) =>
      count === 1 ? `${text} früherer Eintrag` : `${text} frühere Einträge`,
    at: (location) => `Filiale ${location}`,
    by: (who) => `von ${who}`,
    receipt: (number) => `Beleg ${number}`,
    reverses: (when) => `macht den Eintrag vom ${when} rückgängig`,
    reversed: (when) => `rückgängig gemacht am ${when}`,
  },
  errorPage: {
    notFound: 'Diese Seite gibt es nicht',
    notFoundWhy: 'Vielleicht ist der Link unvollständig, oder die Seite wurde entfernt.',
    forbidden: 'Kein Zugriff auf diese Seite',
    forbiddenWhy: 'Bitte im Geschäft nachfragen.',
    tooMany: 'Zu viele Anfragen',
    tooManyWhy: (wait) => `Bitte in ${wait} noch einmal versuchen.`,
    maintenance: 'Hier wird gerade gewartet',
    maintenanceWhy:
      'Für eine Weile lässt sich nichts ändern, aber alles ansehen. Bitte später noch einmal versuchen.',
    unavailable: 'Gerade nicht erreichbar',
    unavailableWhy: 'Gespeichertes ist nicht verloren.',
    historyUnavailable: 'Der Verlauf ist gerade nicht erreichbar',
    historyUnavailableWhy:
      'Stempel, Änderungen und der Verlauf müssen warten; alles andere lässt sich weiter ansehen. Gespeichertes ist nicht verloren.',
    checkBeforeSending:
      'Bitte gleich nachsehen, ob gespeichert ist, was eben gesendet wurde, und es sonst noch einmal senden.',
    tryAgain: 'Bitte gleich noch einmal versuchen.',
    historyDamaged: 'Der Verlauf dieses Eintrags ist beschädigt',
    historyDamagedWhy:
      'Dieser Eintrag lässt sich nicht ändern oder nicht nachlesen, bis der Betreiber des Dienstes ihn repariert hat. Noch einmal versuchen hilft nicht. Alles andere läuft weiter.',
    unsettled: 'Ob das gespeichert wurde, ist nicht sicher',
    unsettledWhy: 'Bitte zurückgehen, die Seite neu laden und erst nachsehen.',
    broken: 'Hier ist etwas schiefgegangen',
    brokenWhy: 'Der Fehler liegt bei uns und ist vermerkt. Bitte noch einmal versuchen.',
    refused: 'Das ging nicht',
    refusedWhy: 'Bitte zurückgehen und die Eingaben prüfen.',
    requestNumber: (id) => `Anfrage ${id}`,
    start: 'Zur Startseite',
    documentation: 'Zur Dokumentation',
  },
  console,
  cardPages,
  locationPages,
  posterConsole,
  customerPages,
  webhookPages,
  numbers,
  overview,
  transfers,
  brand,
  forms,
  holderMessages,
  messagePages,
  outbox,
  signIn,
  counter,
};
