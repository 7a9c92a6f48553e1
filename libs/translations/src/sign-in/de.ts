import type { SignInTexts } from './en.js';

export const signIn: SignInTexts = {
  email: 'E-Mail',
  password: 'Passwort',
  newPassword: 'Neues Passwort',
  yourPassword: 'Ihr Passwort',
  passwordHint: (length) => `Mindestens ${length} Zeichen. Tipp: ein paar zufällige Wörter.`,
  minutes: (text, count) => (count <= 1 ? 'einer Minute' : `${text} Minuten`),
  tooManyAttempts: (wait) => `Zu viele falsche Versuche. Bitte in ${wait} noch einmal versuchen.`,
  support: (contact) => `Bitte die Person fragen, die diesen Dienst betreibt: ${contact}`,
  supportUnknown: 'Bitte die Person fragen, die diesen Dienst betreibt.',
  back: 'Zurück',
  moreRights: {
    title: 'Mehr Rechte geben?',
    text: (role) => `Die neue Rolle ist ${role}, auch für die API-Tokens der Person.`,
  },
  signIn: {
    title: 'Anmelden',
    submit: 'Anmelden',
    forgot: 'Passwort vergessen?',
    or: 'oder',
    company: 'Über die Firma anmelden',
    wrong: 'E-Mail-Adresse oder Passwort ist falsch.',
    expired:
      'Dieses Passwort war für die erste Anmeldung und ist inzwischen zu alt. Ein eigenes gibt es über „Passwort vergessen?“ oder bei der Person, die diesen Dienst betreibt.',
    tooMany: (wait) =>
      `Zu viele falsche Versuche. Bitte in ${wait} noch einmal versuchen oder ein neues Passwort setzen.`,
    signedOut: 'Sie sind abgemeldet.',
    passwordSet: 'Das neue Passwort gilt. Bitte damit anmelden.',
    late: 'Das hat zu lange gedauert. Bitte noch einmal anmelden.',
  },
  code: {
    title: 'Code eingeben',
    label: 'Code',
    hint: 'Die sechs Ziffern in der Authenticator-App oder einer der Ersatzcodes.',
    submit: 'Weiter',
    startAgain: 'Von vorn beginnen',
    wrong: 'Dieser Code ist falsch oder wurde schon benutzt.',
    locked:
      'Zu viele falsche Codes. Bitte einen Ersatzcode eingeben oder ein neues Passwort setzen.',
    tooMany: (wait) =>
      `Zu viele falsche Codes. Bitte in ${wait} noch einmal versuchen oder einen Ersatzcode eingeben.`,
  },
  forgot: {
    title: 'Passwort vergessen',
    noMail: 'Dieser Dienst sendet keine E-Mails, also auch keinen Link für ein neues Passwort.',
    sent: 'Wenn es jemanden mit dieser Adresse gibt, ist ein Link unterwegs.',
    sentHint:
      'Der Link gilt eine Stunde. Nach ein paar Minuten noch keine E-Mail? Bitte im Spam-Ordner nachsehen oder eine andere Adresse versuchen.',
    backToSignIn: 'Zurück zur Anmeldung',
    emailHint: 'Dorthin kommt ein Link für ein neues Passwort.',
    submit: 'Link senden',
  },
  reset: {
    title: 'Neues Passwort',
    gone: 'Dieser Link gilt nicht mehr',
    goneWhy: 'Jeder Link gilt einmal, eine Stunde lang.',
    again: 'Neuen Link anfordern',
    endsTokens:
      'Ihre Adresse war bisher nicht bestätigt, also könnte das Konto von jemand anderem angelegt worden sein. Seine API-Tokens gelten mit dem alten Passwort nicht mehr. Bitte neue für Kassen und Webshops erstellen.',
    submit: 'Passwort setzen',
  },
  account: {
    title: 'Ihr Konto',
    you: 'Sie',
    name: 'Name',
    emailHint: 'An eine neue Adresse geht ein Link. Sie gilt, sobald er geöffnet wurde.',
    onlyForEmail: 'nur um die E-Mail-Adresse zu ändern',
    save: 'Speichern',
    passwordTitle: 'Passwort',
    currentPassword: 'Bisheriges Passwort',
    changePassword: 'Passwort ändern',
    secondFactor: 'Anmeldung in zwei Schritten',
    on: 'Ein',
    off: 'Aus',
    secondFactorOn: (count) =>
      `Bei jeder Anmeldung braucht es einen Code aus der Authenticator-App. Übrige Ersatzcodes: ${count}.`,
    secondFactorOff:
      'Mit einem Code aus einer App auf dem Handy genügt ein gestohlenes Passwort allein nicht zum Anmelden.',
    change: 'Ändern',
    setUp: 'Einrichten',
    sessions: 'Hier sind Sie angemeldet',
    thisBrowser: 'Dieser Browser',
    signedInOn: (time) => `Angemeldet am ${time}`,
    lastSeen: (time) => `zuletzt benutzt am ${time}`,
    unknownBrowser: 'Unbekannter Browser',
    browserOn: (browser, system) => `${browser} auf ${system}`,
    noOtherSessions: 'Sonst sind Sie nirgends angemeldet.',
    endSession: 'Abmelden',
    endSessionOf: (browser) => `(${browser})`,
    endSessions: 'Überall sonst abmelden',
    askEndSession: 'Diesen Browser abmelden?',
    askEndSessionText: 'Dort muss man sich dann neu anmelden.',
    askEndSessions: 'Überall sonst abmelden?',
    askEndSessionsText: 'Alle Browser außer diesem müssen sich neu anmelden.',
    done: {
      saved: 'Gespeichert.',
      address_link:
        'Gespeichert. Damit die neue Adresse gilt, bitte den Link öffnen, der dorthin gesendet wurde.',
      address: 'Ihre E-Mail-Adresse ist geändert.',
      afresh:
        'Sie sind angemeldet. Ihre Adresse war bisher nicht bestätigt, also könnte das Konto von jemand anderem angelegt worden sein. Zur Sicherheit gelten sein Passwort, seine Codes, API-Tokens und alle anderen Anmeldungen nicht mehr. Bitte neue Tokens für Kassen und Webshops erstellen.',
      password:
        'Das neue Passwort gilt. Überall sonst wurden Sie abgemeldet. Eine PIN für die Theke muss neu festgelegt werden.',
      session: 'Der Browser ist abgemeldet.',
      sessions: 'Überall sonst wurden Sie abgemeldet.',
      second_factor_off: 'Die Anmeldung in zwei Schritten ist aus.',
    },
    noMail: 'Die Adresse lässt sich hier nicht ändern, weil dieser Dienst keine E-Mails sendet.',
  },
  firstPassword: {
    title: 'Ein eigenes Passwort wählen',
    why: 'Das Passwort, das Sie bekommen haben, gilt nur für die erste Anmeldung.',
    first: 'Das Passwort, das Sie bekommen haben',
    submit: 'Passwort setzen',
  },
  secondFactorRule: {
    required: 'Pflicht',
    optional: 'Freiwillig',
    isRequired: 'Alle in diesem Geschäft brauchen zur Anmeldung einen Code.',
    isOptional: 'Alle in diesem Geschäft entscheiden das selbst.',
    turnOn: 'Zur Pflicht machen',
    turnOff: 'Freiwillig machen',
    askOn: 'Anmeldung in zwei Schritten zur Pflicht machen?',
    askOnText:
      'Alle in diesem Geschäft brauchen dann zur Anmeldung einen Code. Wer noch keinen hat, richtet das ein, bevor es weitergeht, auch Sie selbst.',
    askOff: 'Anmeldung in zwei Schritten freiwillig machen?',
    askOffText:
      'Alle in diesem Geschäft können sie dann ausschalten und sich nur mit dem Passwort anmelden.',
  },
  secondFactor: {
    required:
      'Die Anmeldung in zwei Schritten ist hier Pflicht. Bitte jetzt einrichten, dann geht es weiter.',
    title: 'Anmeldung in zwei Schritten',
    intro:
      'Bei jeder Anmeldung braucht es dann einen Code aus einer Authenticator-App auf dem Handy. Vielleicht hat es schon eine solche App; sonst gibt es sie im App-Store.',
    setUp: 'Einrichten',
    step1: '1. Inkpad zur Authenticator-App hinzufügen',
    onThisPhone: 'Auf diesem Handy einrichten',
    scan: 'Mit der App scannen:',
    qrCode: 'QR-Code für die Authenticator-App',
    cannotScan: 'Beides geht nicht?',
    enterKey: 'Diesen Schlüssel in der App eingeben:',
    step2: '2. Den Code eingeben, den sie zeigt',
    code: 'Code',
    turnOn: 'Einschalten',
    notNow: 'Jetzt nicht',
    isOn: 'Die Anmeldung in zwei Schritten ist an: Bei jeder Anmeldung braucht es einen Code.',
    recovery: 'Ersatzcodes',
    recoveryText: (count) =>
      `Damit gelingt die Anmeldung, wenn das Handy verloren ist. Übrig: ${count}. Neue Codes ersetzen die alten.`,
    newCodes: 'Neue Codes erstellen',
    turnOff: 'Ausschalten',
    turnOffText:
      'Dann genügt das Passwort zum Anmelden. Für ein anderes Handy bitte aus- und neu einschalten.',
    backToAccount: 'Zurück zum Konto',
    isNew: 'Die Anmeldung in zwei Schritten ist an. Ab jetzt braucht es dabei einen Code.',
    isReplaced: 'Die alten Ersatzcodes gelten nicht mehr.',
    keepText:
      'Bitte diese Codes drucken oder aufschreiben und getrennt vom Handy aufbewahren. Ist das Handy verloren, gelingt mit jedem Code eine Anmeldung.',
    shownOnce: 'Sie werden nicht noch einmal gezeigt.',
    saved: 'Ich habe sie aufbewahrt',
  },
  address: {
    question: 'Ist das Ihre neue Adresse?',
    text: 'Damit melden Sie sich an, und dorthin gehen Links für neue Passwörter.',
    yes: 'Diese Adresse benutzen',
    no: 'Die alte behalten',
    taken: 'Diese Adresse ist schon vergeben',
    takenWhy: 'Jemand anderes meldet sich damit an.',
    gone: 'Dieser Link gilt nicht mehr',
    goneWhy: (email) =>
      `Er wurde benutzt, ist abgelaufen, wurde durch einen neueren ersetzt oder gehört zu jemand anderem. Sie sind angemeldet als ${email}.`,
  },
  company: {
    notSignedIn: 'Sie sind nicht angemeldet',
    late: 'Die Anmeldung hat zu lange gedauert oder wurde in einem anderen Browser begonnen.',
    refused: 'Die Anmeldung der Firma hat nicht bestätigt, wer Sie sind.',
    noEmail: 'Die Firma hat Ihre E-Mail-Adresse nicht bestätigt.',
    tryAgain: 'Bitte noch einmal versuchen. Wenn es wieder passiert, hilft die IT der Firma.',
    unreachable: 'Die Anmeldung der Firma ist nicht erreichbar',
    unreachableWhy: 'Bitte gleich noch einmal versuchen oder mit dem Passwort anmelden.',
    noAccount: 'Hier gibt es noch kein Konto für Sie',
    noAccountWhy: (email) =>
      `Die Firma hat Sie als ${email} angemeldet. Die Inhaberin oder der Inhaber eines Geschäfts kann diese Adresse einladen.`,
    taken: 'Dieses Konto gehört jemand anderem',
    takenWhy: (email) =>
      `Jemand anderes in der Firma hat sich schon als ${email} angemeldet. Wenn die Adresse jetzt Ihnen gehört, kann die Person, die diesen Dienst betreibt, das Konto von dieser Person trennen.`,
  },
  mails: {
    hello: (name) => `Guten Tag ${name},`,
    resetSubject: 'Ein neues Passwort für Inkpad',
    reset: (
      link,
    ) => `für Ihr Konto wurde ein neues Passwort angefordert. Zum Setzen bitte diesen Link innerhalb einer Stunde öffnen:

${link}

Wenn Sie das nicht waren, können Sie diese E-Mail ignorieren: Das Passwort bleibt, wie es ist.`,
    addressSubject: 'Ihre E-Mail-Adresse für Inkpad',
    address: (
      link,
      hours,
    ) => `diese Adresse soll für Ihr Konto gelten. Bitte diesen Link innerhalb von ${hours} Stunden öffnen und sich wie
bisher anmelden:

${link}

Wenn Sie das nicht waren, können Sie diese E-Mail ignorieren: Es ändert sich nichts.`,
    takenHello: 'Guten Tag,',
    taken: (
      url,
    ) => `diese Adresse sollte für ein anderes Konto gelten. Sie hat schon ein Konto, also hat sich nichts geändert.
Damit anmelden oder ein neues Passwort setzen können Sie hier: ${url}

Wenn Sie das nicht waren, können Sie diese E-Mail ignorieren.`,
    changedSubject: 'Ihre E-Mail-Adresse für Inkpad wurde geändert',
    changed: (email) => `Sie melden sich jetzt mit ${email} an. Diese Adresse gilt nicht mehr.

Wenn Sie das nicht waren, wenden Sie sich bitte sofort an die Person, die diesen Dienst betreibt.`,
    wrongCodesSubject: 'Falsche Codes für Ihr Inkpad-Konto',
    wrongCodes: (count) => `jemand hat Ihr Passwort und danach ${count} falsche Codes eingegeben.`,
    wrongCodesLocked: (
      link,
    ) => `Ihr Konto nimmt keine Codes der App mehr an. Zum Anmelden bitte einen Ersatzcode eingeben oder ein neues Passwort setzen:

${link}`,
    wrongCodesOpen: (
      link,
    ) => `Wenn Sie das nicht waren, kennt jemand Ihr Passwort. Bitte ein neues setzen:

${link}`,
  },
};
