import type { SignInTexts } from './en.js';

export const signIn: SignInTexts = {
  email: 'E-mail',
  password: 'Mot de passe',
  newPassword: 'Nouveau mot de passe',
  yourPassword: 'Votre mot de passe',
  passwordHint: (length) => `Au moins ${length} caractères. Conseil : quelques mots au hasard.`,
  minutes: (text, count) => (count <= 1 ? 'une minute' : `${text} minutes`),
  tooManyAttempts: (wait) => `Trop de tentatives incorrectes. Veuillez réessayer dans ${wait}.`,
  support: (contact) => `Adressez-vous à la personne qui gère ce service : ${contact}`,
  supportUnknown: 'Adressez-vous à la personne qui gère ce service.',
  back: 'Retour',
  moreRights: {
    title: 'Donner plus de droits ?',
    text: (role) =>
      `Le nouveau rôle est ${role}, y compris pour les jetons d’API de cette personne.`,
  },
  signIn: {
    title: 'Connexion',
    submit: 'Se connecter',
    forgot: 'Mot de passe oublié ?',
    or: 'ou',
    company: 'Se connecter via votre entreprise',
    wrong: 'L’adresse e-mail ou le mot de passe est incorrect.',
    expired:
      'Ce mot de passe était prévu pour votre première connexion, et il est trop ancien. Choisissez le vôtre avec « Mot de passe oublié ? », ou adressez-vous à la personne qui gère ce service.',
    tooMany: (wait) =>
      `Trop de tentatives incorrectes. Réessayez dans ${wait}, ou choisissez un nouveau mot de passe.`,
    signedOut: 'Vous êtes déconnecté.',
    passwordSet: 'Votre nouveau mot de passe est enregistré. Connectez-vous avec celui-ci.',
    late: 'Cela a pris trop de temps. Veuillez vous reconnecter.',
  },
  code: {
    title: 'Saisissez votre code',
    label: 'Code',
    hint: 'Les six chiffres de votre application d’authentification, ou un de vos codes de secours.',
    submit: 'Continuer',
    startAgain: 'Recommencer',
    wrong: 'Ce code est incorrect ou a déjà servi.',
    locked:
      'Trop de codes incorrects. Saisissez un de vos codes de secours, ou choisissez un nouveau mot de passe.',
    tooMany: (wait) =>
      `Trop de codes incorrects. Réessayez dans ${wait}, ou saisissez un de vos codes de secours.`,
  },
  forgot: {
    title: 'Mot de passe oublié',
    noMail:
      'Ce service n’envoie pas d’e-mails : il ne peut pas vous envoyer de lien pour un nouveau mot de passe.',
    sent: 'S’il existe un compte avec cette adresse, un lien est en route.',
    sentHint:
      'Le lien est valable une heure. Toujours rien après quelques minutes ? Regardez dans les indésirables, ou essayez une autre adresse.',
    backToSignIn: 'Retour à la connexion',
    emailHint: 'Nous vous enverrons un lien pour choisir un nouveau mot de passe.',
    submit: 'Envoyer le lien',
  },
  reset: {
    title: 'Nouveau mot de passe',
    gone: 'Ce lien ne fonctionne plus',
    goneWhy: 'Chaque lien fonctionne une fois, pendant une heure.',
    again: 'Demander un autre lien',
    endsTokens:
      'Votre adresse n’était pas encore confirmée : quelqu’un d’autre a pu créer ce compte. Ses jetons d’API cessent de fonctionner avec l’ancien mot de passe. Créez-en de nouveaux pour vos caisses et boutiques en ligne.',
    submit: 'Enregistrer le mot de passe',
  },
  account: {
    title: 'Votre compte',
    you: 'Vous',
    name: 'Nom',
    emailHint:
      'Nous envoyons un lien à la nouvelle adresse. Elle compte dès que vous l’avez ouvert.',
    onlyForEmail: 'seulement pour changer d’adresse e-mail',
    save: 'Enregistrer',
    passwordTitle: 'Mot de passe',
    currentPassword: 'Mot de passe actuel',
    changePassword: 'Changer le mot de passe',
    secondFactor: 'Connexion en deux étapes',
    on: 'Activée',
    off: 'Désactivée',
    secondFactorOn: (count) =>
      `Un code de votre application d’authentification est demandé à chaque connexion. Codes de secours restants : ${count}.`,
    secondFactorOff:
      'Avec un code d’une application de votre téléphone, un mot de passe volé ne suffit plus pour se connecter.',
    change: 'Modifier',
    setUp: 'Configurer',
    sessions: 'Où vous êtes connecté',
    thisBrowser: 'Ce navigateur',
    signedInOn: (time) => `Connecté le ${time}`,
    lastSeen: (time) => `utilisé pour la dernière fois le ${time}`,
    unknownBrowser: 'Navigateur inconnu',
    browserOn: (browser, system) => `${browser} sur ${system}`,
    noOtherSessions: 'Vous n’êtes connecté nulle part ailleurs.',
    endSession: 'Déconnecter',
    endSessionOf: (browser) => `(${browser})`,
    endSessions: 'Se déconnecter partout ailleurs',
    askEndSession: 'Déconnecter ce navigateur ?',
    askEndSessionText: 'Il faudra s’y connecter à nouveau.',
    askEndSessions: 'Se déconnecter partout ailleurs ?',
    askEndSessionsText: 'Il faudra se connecter à nouveau dans tous les navigateurs sauf celui-ci.',
    done: {
      saved: 'Enregistré.',
      address_link:
        'Enregistré. Pour utiliser la nouvelle adresse, ouvrez le lien que nous y avons envoyé.',
      address: 'Votre adresse e-mail a été changée.',
      afresh:
        'Vous êtes connecté. Votre adresse n’était pas encore confirmée : quelqu’un d’autre a pu créer ce compte. Par sécurité, son mot de passe, ses codes, ses jetons d’API et toutes les autres sessions ne sont plus valables. Créez de nouveaux jetons pour vos caisses et boutiques en ligne.',
      password:
        'Votre nouveau mot de passe est enregistré. Vous avez été déconnecté partout ailleurs. Si vous aviez un code PIN pour le comptoir, choisissez-en un nouveau.',
      session: 'Ce navigateur-là est déconnecté.',
      sessions: 'Vous avez été déconnecté partout ailleurs.',
      second_factor_off: 'La connexion en deux étapes est désactivée.',
    },
    noMail: 'L’adresse ne peut pas être changée ici, car ce service n’envoie pas d’e-mails.',
  },
  firstPassword: {
    title: 'Choisissez votre mot de passe',
    why: 'Le mot de passe que vous avez reçu ne sert qu’à votre première connexion.',
    first: 'Le mot de passe que vous avez reçu',
    submit: 'Enregistrer le mot de passe',
  },
  secondFactorRule: {
    required: 'Obligatoire',
    optional: 'Facultative',
    isRequired: 'Chaque personne de cet établissement a besoin d’un code pour se connecter.',
    isOptional: 'Chaque personne de cet établissement décide elle-même.',
    turnOn: 'Rendre obligatoire',
    turnOff: 'Rendre facultative',
    askOn: 'Rendre la connexion en deux étapes obligatoire ?',
    askOnText:
      'Chaque personne de cet établissement aura besoin d’un code pour se connecter. Sans code, il faudra d’abord la configurer, vous aussi.',
    askOff: 'Rendre la connexion en deux étapes facultative ?',
    askOffText:
      'Chaque personne de cet établissement pourra la désactiver et se connecter avec son seul mot de passe.',
  },
  secondFactor: {
    required: 'La connexion en deux étapes est obligatoire ici. Configurez-la pour continuer.',
    title: 'Connexion en deux étapes',
    intro:
      'Un code d’une application d’authentification de votre téléphone sera demandé à chaque connexion. Votre téléphone en a peut-être déjà une ; sinon, installez-en une depuis sa boutique d’applications.',
    setUp: 'Configurer',
    step1: '1. Ajoutez Inkpad à votre application d’authentification',
    onThisPhone: 'Configurer sur ce téléphone',
    scan: 'Scannez ceci avec l’application :',
    qrCode: 'QR code pour votre application d’authentification',
    cannotScan: 'Aucun des deux ne marche ?',
    enterKey: 'Saisissez cette clé dans l’application :',
    step2: '2. Saisissez le code qu’elle affiche',
    code: 'Code',
    turnOn: 'Activer',
    notNow: 'Pas maintenant',
    isOn: 'La connexion en deux étapes est activée : un code est demandé à chaque connexion.',
    recovery: 'Codes de secours',
    recoveryText: (count) =>
      `Ils vous permettent de vous connecter si vous perdez votre téléphone. Il vous en reste ${count}. De nouveaux codes remplacent les anciens.`,
    newCodes: 'Créer de nouveaux codes',
    turnOff: 'Désactiver',
    turnOffText:
      'Le mot de passe seul suffira pour vous connecter. Pour changer de téléphone, désactivez puis configurez à nouveau.',
    backToAccount: 'Retour à votre compte',
    isNew: 'La connexion en deux étapes est activée. Désormais, un code est demandé.',
    isReplaced: 'Vos anciens codes de secours ne fonctionnent plus.',
    keepText:
      'Imprimez ou notez ces codes, et gardez-les à l’écart de votre téléphone. Si vous le perdez, chaque code vous permet de vous connecter une fois.',
    shownOnce: 'Ils ne seront plus affichés.',
    saved: 'Je les ai gardés',
  },
  address: {
    question: 'Est-ce votre nouvelle adresse ?',
    text: 'Vous vous connecterez avec cette adresse, et les liens pour un nouveau mot de passe y seront envoyés.',
    yes: 'Utiliser cette adresse',
    no: 'Garder l’ancienne',
    taken: 'Cette adresse est déjà utilisée',
    takenWhy: 'Une autre personne se connecte avec celle-ci.',
    gone: 'Ce lien ne fonctionne plus',
    goneWhy: (email) =>
      `Il a servi, a expiré, a été remplacé par un lien plus récent, ou appartient à une autre personne. Vous êtes connecté en tant que ${email}.`,
  },
  company: {
    notSignedIn: 'Vous n’êtes pas connecté',
    late: 'La connexion a pris trop de temps, ou a été commencée dans un autre navigateur.',
    refused: 'La connexion de votre entreprise n’a pas confirmé votre identité.',
    noEmail: 'Votre entreprise n’a pas confirmé votre adresse e-mail.',
    tryAgain:
      'Veuillez réessayer. Si cela se reproduit, adressez-vous au service informatique de votre entreprise.',
    unreachable: 'La connexion de votre entreprise est injoignable',
    unreachableWhy: 'Réessayez dans un instant, ou connectez-vous avec votre mot de passe.',
    noAccount: 'Vous n’avez pas encore de compte ici',
    noAccountWhy: (email) =>
      `Votre entreprise vous a connecté en tant que ${email}. Demandez à un propriétaire d’un commerce d’inviter cette adresse.`,
    taken: 'Ce compte appartient à quelqu’un d’autre',
    takenWhy: (email) =>
      `Une autre personne de votre entreprise s’est déjà connectée en tant que ${email}. Si l’adresse est maintenant la vôtre, demandez à la personne qui gère ce service de dissocier le compte.`,
  },
  mails: {
    hello: (name) => `Bonjour ${name},`,
    resetSubject: 'Un nouveau mot de passe pour Inkpad',
    reset: (
      link,
    ) => `Un nouveau mot de passe a été demandé pour votre compte. Pour le choisir, ouvrez ce lien dans l’heure qui vient :

${link}

Si ce n’était pas vous, ignorez cet e-mail : votre mot de passe reste le même.`,
    addressSubject: 'Votre adresse e-mail pour Inkpad',
    address: (
      link,
      hours,
    ) => `Cette adresse doit servir à votre compte. Ouvrez ce lien dans les ${hours} heures, et connectez-vous
comme avant :

${link}

Si ce n’était pas vous, ignorez cet e-mail : rien ne change.`,
    takenHello: 'Bonjour,',
    taken: (
      url,
    ) => `Cette adresse devait servir à un autre compte. Elle a déjà un compte, donc rien n’a changé.
Vous pouvez vous y connecter, ou choisir un nouveau mot de passe, ici : ${url}

Si ce n’était pas vous, ignorez cet e-mail.`,
    changedSubject: 'Votre adresse e-mail pour Inkpad a été changée',
    changed: (email) => `Vous vous connectez désormais avec ${email}. Cette adresse-ci ne sert plus.

Si ce n’était pas vous, adressez-vous tout de suite à la personne qui gère ce service.`,
    wrongCodesSubject: 'Codes incorrects pour votre compte Inkpad',
    wrongCodes: (count) => `Quelqu’un a saisi votre mot de passe, puis ${count} codes incorrects.`,
    wrongCodesLocked: (
      link,
    ) => `Votre compte n’accepte plus les codes de votre application. Pour vous connecter, saisissez un de vos codes de secours, ou choisissez un nouveau mot de passe :

${link}`,
    wrongCodesOpen: (
      link,
    ) => `Si ce n’était pas vous, quelqu’un connaît votre mot de passe. Choisissez-en un nouveau :

${link}`,
  },
};
