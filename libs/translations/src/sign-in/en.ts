/** The texts of signing in, of one's own account, and of the e-mails about both. */
export const signIn = {
  email: 'E-mail',
  password: 'Password',
  newPassword: 'New password',
  yourPassword: 'Your password',
  /** Below a new password. */
  passwordHint: (length: string) => `At least ${length} characters. Tip: use a few random words.`,
  /** A duration in the sentences that follow. */
  minutes: (text: string, count: number) => (count <= 1 ? 'a minute' : `${text} minutes`),
  tooManyAttempts: (wait: string) => `Too many wrong attempts. Please try again in ${wait}.`,
  /** Names the person who runs the service. @param contact an e-mail address, or a web address */
  support: (contact: string) => `Ask the person who runs this service: ${contact}`,
  supportUnknown: 'Ask the person who runs this service.',
  back: 'Back',
  /** The question before a user gets a higher role. */
  moreRights: {
    title: 'Give more rights?',
    text: (role: string) => `The new role is ${role}, also for this user’s API tokens.`,
  },
  signIn: {
    title: 'Sign in',
    submit: 'Sign in',
    forgot: 'Forgot password?',
    or: 'or',
    company: 'Sign in with your company',
    wrong: 'E-mail address or password is wrong.',
    expired:
      'This password was for your first sign-in, and is too old by now. Set one of your own with “Forgot password?”, or ask the person who runs this service.',
    tooMany: (wait: string) =>
      `Too many wrong attempts. Try again in ${wait}, or set a new password.`,
    signedOut: 'You are signed out.',
    passwordSet: 'Your new password is set. Please sign in with it.',
    late: 'That took too long. Please sign in again.',
  },
  code: {
    title: 'Enter your code',
    label: 'Code',
    hint: 'The six digits in your authenticator app, or one of your recovery codes.',
    submit: 'Continue',
    startAgain: 'Start again',
    wrong: 'This code is wrong or has already been used.',
    locked: 'Too many wrong codes. Enter one of your recovery codes, or set a new password.',
    tooMany: (wait: string) =>
      `Too many wrong codes. Try again in ${wait}, or enter one of your recovery codes.`,
  },
  forgot: {
    title: 'Forgot password',
    noMail: 'This service sends no e-mail, so it cannot send you a link for a new password.',
    sent: 'If there is a user with this address, a link is on its way.',
    sentHint:
      'The link works for one hour. No e-mail after a few minutes? Check your spam folder, or try another address.',
    backToSignIn: 'Back to sign-in',
    emailHint: 'We’ll send you a link to set a new password.',
    submit: 'Send link',
  },
  reset: {
    title: 'New password',
    gone: 'This link no longer works',
    goneWhy: 'Each link works once, within one hour.',
    again: 'Get another link',
    endsTokens:
      'Your address was not confirmed until now, so someone else may have created this account. Its API tokens stop working together with the old password. Create new ones for your tills and web shops.',
    submit: 'Set password',
  },
  account: {
    title: 'Your account',
    you: 'You',
    name: 'Name',
    emailHint: 'We’ll send a link to a new address. The change takes effect once you open it.',
    onlyForEmail: 'only to change the e-mail address',
    save: 'Save',
    passwordTitle: 'Password',
    currentPassword: 'Current password',
    changePassword: 'Change password',
    secondFactor: 'Two-step sign-in',
    on: 'On',
    off: 'Off',
    secondFactorOn: (count: string) =>
      `You need a code from your authenticator app each time you sign in. Recovery codes left: ${count}.`,
    secondFactorOff:
      'With a code from an app on your phone, a stolen password alone is not enough to sign in.',
    change: 'Change',
    setUp: 'Set up',
    sessions: 'Where you’re signed in',
    thisBrowser: 'This browser',
    signedInOn: (time: string) => `Signed in on ${time}`,
    lastSeen: (time: string) => `last used ${time}`,
    unknownBrowser: 'Unknown browser',
    /** @param system such as "iPhone" or "Windows" */
    browserOn: (browser: string, system: string) => `${browser} on ${system}`,
    noOtherSessions: 'You’re not signed in anywhere else.',
    endSession: 'Sign out',
    /** Read out after `endSession`. */
    endSessionOf: (browser: string) => `on ${browser}`,
    endSessions: 'Sign out everywhere else',
    /** The questions before sessions are ended. */
    askEndSession: 'Sign out this browser?',
    askEndSessionText: 'Whoever uses it has to sign in again.',
    askEndSessions: 'Sign out everywhere else?',
    askEndSessionsText: 'All browsers but this one have to sign in again.',
    /** Notices about the previous form. */
    done: {
      saved: 'Saved.',
      address_link: 'Saved. To use your new address, open the link that we have sent to it.',
      address: 'Your e-mail address has been changed.',
      afresh:
        'You are signed in. Your address was not confirmed until now, so someone else may have created this account. For your safety, its password, codes, API tokens and all other sessions have ended. Create new tokens for your tills and web shops.',
      password:
        'Your new password is set. You have been signed out everywhere else. If you had a PIN for the counter, set a new one.',
      session: 'That browser is signed out.',
      sessions: 'You have been signed out everywhere else.',
      second_factor_off: 'Two-step sign-in is off.',
    } as Record<string, string>,
    noMail: 'The address cannot be changed here, because this service sends no e-mail.',
  },
  /** The page on which users replace a generated password. */
  firstPassword: {
    title: 'Choose your own password',
    why: 'The password that you were given is only for your first sign-in.',
    first: 'The password you were given',
    submit: 'Set password',
  },
  /** Whether a store requires two-step sign-in. */
  secondFactorRule: {
    required: 'Required',
    optional: 'Optional',
    isRequired: 'Everyone in this store needs a code to sign in.',
    isOptional: 'Everyone in this store decides for themselves.',
    turnOn: 'Require it',
    turnOff: 'Make it optional',
    askOn: 'Require two-step sign-in?',
    askOnText:
      'Everyone in this store then needs a code to sign in. Those without one set it up before they can do anything else, and so do you.',
    askOff: 'Make two-step sign-in optional?',
    askOffText: 'Everyone in this store can then turn it off, and sign in with a password alone.',
  },
  secondFactor: {
    required: 'Two-step sign-in is required here. Set it up to continue.',
    title: 'Two-step sign-in',
    intro:
      'You will need a code from an authenticator app on your phone each time you sign in. Your phone may already have such an app; otherwise install one from its app store.',
    setUp: 'Set up',
    step1: '1. Add Inkpad to your authenticator app',
    onThisPhone: 'Set up on this phone',
    scan: 'Scan this with the app:',
    qrCode: 'QR code for your authenticator app',
    cannotScan: 'Neither works?',
    enterKey: 'Enter this key in the app:',
    step2: '2. Enter the code that it shows',
    code: 'Code',
    turnOn: 'Turn on',
    notNow: 'Not now',
    isOn: 'Two-step sign-in is on: you need a code each time you sign in.',
    recovery: 'Recovery codes',
    recoveryText: (count: string) =>
      `They let you sign in if you lose your phone. You have ${count} left. New codes replace the old ones.`,
    newCodes: 'Create new codes',
    turnOff: 'Turn off',
    turnOffText:
      'You then sign in with your password alone. To move to another phone, turn it off and set it up again.',
    backToAccount: 'Back to your account',
    isNew: 'Two-step sign-in is on. From now on, you need a code to sign in.',
    isReplaced: 'Your old recovery codes no longer work.',
    keepText:
      'Print these codes or write them down, and keep them apart from your phone. If you lose your phone, each code lets you sign in once.',
    shownOnce: 'They are not shown again.',
    saved: 'I have saved them',
  },
  address: {
    question: 'Is this your new address?',
    text: 'You will sign in with this address, and links for new passwords will be sent to it.',
    yes: 'Use this address',
    no: 'Keep the old one',
    taken: 'This address is already in use',
    takenWhy: 'Another user signs in with it.',
    gone: 'This link no longer works',
    goneWhy: (email: string) =>
      `It was used, has expired, was replaced by a newer link, or belongs to another user. You are signed in as ${email}.`,
  },
  company: {
    notSignedIn: 'You are not signed in',
    late: 'The sign-in took too long, or was started in another browser.',
    refused: 'Your company’s sign-in did not confirm who you are.',
    noEmail: 'Your company has not confirmed your e-mail address.',
    tryAgain: 'Please try again. If it happens again, ask the IT support of your company.',
    unreachable: 'Your company’s sign-in cannot be reached',
    unreachableWhy: 'Please try again in a moment, or sign in with your password.',
    noAccount: 'You have no account here yet',
    noAccountWhy: (email: string) =>
      `Your company signed you in as ${email}. Ask an owner of a store to invite this address.`,
    taken: 'This account belongs to someone else',
    takenWhy: (email: string) =>
      `Someone else at your company has signed in as ${email} before. If the address is yours now, ask the person who runs this service to unlink the account from that person.`,
  },
  /** E-mails to users, in the language of their store. */
  mails: {
    hello: (name: string) => `Hello ${name},`,
    resetSubject: 'A new password for Inkpad',
    reset: (
      link: string,
    ) => `You (or someone else) asked to reset your password. To set a new one, open this link within an hour:

${link}

If it was not you, ignore this e-mail: your password stays the same.`,
    addressSubject: 'Your e-mail address for Inkpad',
    address: (
      link: string,
      hours: string,
    ) => `You (or someone else) asked to use this address for your account. Open this link within ${hours} hours, and sign in
as before:

${link}

If it was not you, ignore this e-mail: nothing changes.`,
    takenHello: 'Hello,',
    taken: (
      url: string,
    ) => `You (or someone else) asked to use this address for another account. It already has an account, so nothing has changed.
You can sign in with it at ${url}, or set a new password there.

If it was not you, ignore this e-mail.`,
    changedSubject: 'Your e-mail address for Inkpad has changed',
    changed: (email: string) => `You now sign in with ${email}. This address is no longer used.

If it was not you, ask the person who runs this service for help at once.`,
    wrongCodesSubject: 'Wrong codes for your Inkpad account',
    wrongCodes: (count: string) =>
      `Someone has entered your password and then ${count} wrong codes.`,
    wrongCodesLocked: (
      link: string,
    ) => `Your account no longer accepts codes of your app. To sign in, enter one of your recovery codes, or set a new password:

${link}`,
    wrongCodesOpen: (
      link: string,
    ) => `If it was not you, someone knows your password. Set a new one:

${link}`,
  },
};

/** Has the shape of the English texts, with other values. */
export type SignInTexts = typeof signIn;
