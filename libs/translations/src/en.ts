import { cardPages } from './card-pages/en.js';
import { brand } from './brand/en.js';
import { console } from './console/en.js';
import { locationPages } from './location-pages/en.js';
import { posterConsole } from './poster-console/en.js';
import { customerPages } from './customer-pages/en.js';
import { webhookPages } from './webhook-pages/en.js';
import { numbers } from './numbers/en.js';
import { overview } from './overview/en.js';
import { transfers } from './transfer-pages/en.js';
import { forms } from './forms/en.js';
import { holderMessages } from './holder-messages/en.js';
import { messagePages } from './message-pages/en.js';
import { outbox } from './outbox/en.js';
import { signIn } from './sign-in/en.js';
import { counter } from './counter/en.js';

const stamps = (text: string, count: number) => `${text} ${count === 1 ? 'stamp' : 'stamps'}`;

/**
 * The texts that people read, by subject. This file defines which texts every language has. Numbers arrive formatted for
 * the language, together with the count for the plural.
 */
export const en = {
  stamps: {
    label: 'Stamps',
    count: stamps,
    added: (text: string, count: number) => `${stamps(text, count)} added`,
  },
  /** Of the passes of both wallets. */
  wallet: {
    rewards: 'Rewards',
    reward: (name: string, text: string, count: number) => `${name}: ${stamps(text, count)}`,
    moreRewards: (text: string, count: number) =>
      `And ${text} more ${count === 1 ? 'reward' : 'rewards'} on the card’s page.`,
  },
  /** Labels of how to reach the store, on passes and pages. */
  contact: {
    title: 'Contact',
    website: 'Website',
    phone: 'Phone',
    email: 'E-mail',
    address: 'Address',
    terms: 'Terms',
  },
  /** The card in the browser. */
  card: {
    stampsOf: (have: string, need: string) => `${have} of ${need} stamps`,
    /** The balance of a full card. @param cards how many are full */
    full: (text: string, cards: number) =>
      cards === 1 ? 'Your card is full' : `${text} full cards`,
    /** More stamps than a card takes. @param cards how many are full */
    surplus: (text: string, cards: number, have: string, need: string) =>
      `${text} full ${cards === 1 ? 'card' : 'cards'} and ${have} of ${need}`,
    /** The heading above the rewards that can be redeemed. */
    rewardReady: 'Your reward is ready',
    rewardsReady: 'Your rewards are ready',
    howToRedeem: 'Show the code at the counter and say what you would like.',
    uses: (text: string, count: number) => `uses ${stamps(text, count)}`,
    costs: stamps,
    /** After redeeming. */
    enjoy: 'Enjoy!',
    redeemedNow: (reward: string) => `${reward}: redeemed just now.`,
    enlarge: 'Enlarge the code',
    close: 'Close',
    notNow: 'Not now',
    about: (store: string) => `Stamp card of ${store}`,
    /** After signing up. */
    joined: 'Welcome!',
    joinedWhy:
      'We’ve sent you a link to your card. Collected stamps here before? Show this code anyway: the counter finds your stamps.',
    /** Instead of `joinedWhy`, if no message can be sent. */
    joinedWithoutLink:
      'We can’t send you a link to this card, so add it to your wallet or save this page. Collected stamps here before? Show this code anyway: the counter finds your stamps.',
    member: 'Member',
    toReward: 'Next reward in',
    rewards: 'Rewards',
    ready: 'Ready to redeem',
    toGo: (text: string, count: number) => `${stamps(text, count)} to go`,
    barcode: (code: string) => `Barcode of the card ${code}`,
    qrCode: (code: string) => `QR code of the card ${code}`,
    showCode: 'Show this code at the counter',
    validUntil: (day: string) => `Valid until ${day}`,
    expired: (day: string) => `This card expired on ${day}. Ask at the counter for a new one.`,
    onYourPhone: 'On your phone',
    addToApple: 'Add to Apple Wallet',
    addToGoogle: 'Add to Google Wallet',
    notifyMe: 'Notify me about stamps',
    stopNotifying: 'Stop notifications',
    /** In the browser's settings. */
    notificationsBlocked: 'Notifications from this page are blocked in your browser’s settings.',
    notificationsFailed: 'Notifications could not be switched on. Please try again later.',
    install: 'Add to Home Screen',
    /** For iPhones, where a page cannot offer to install it. */
    installByHand: 'To have the card at hand, tap “Share” and then “Add to Home Screen”.',
    offline: (when: string) => `No connection. This is your card as of ${when}.`,
    notFound: 'This card does not exist',
    notFoundWhy:
      'The link may be incomplete, or the card was deleted. Open the link in your message once more, or scan the poster at the shop for a new card.',
  },
  /** What the holder of a card is notified of. */
  notice: {
    toReward: (text: string, count: number, reward: string) =>
      `${text} more ${count === 1 ? 'stamp' : 'stamps'} to your reward: ${reward}.`,
    toFullCard: (text: string, count: number) =>
      `${text} more ${count === 1 ? 'stamp' : 'stamps'} to a full card.`,
    unlocked: (reward: string) => `Your reward is ready: ${reward}.`,
    redeemed: (reward: string) => `Reward redeemed: ${reward}. Enjoy!`,
  },
  applePass: {
    member: 'Member',
    /** Label of the number of stamps that are missing: short, because four fields share a row. */
    toReward: 'To go',
    store: 'Shop',
    card: 'Card',
    openPage: 'Open the card in the browser',
    news: 'Latest news',
    /** The value of `news` when there is no other notice. */
    balance: (text: string, count: number) => `You have ${stamps(text, count)}.`,
    available: 'ready for you',
    expires: 'Valid until',
    shops: 'Shops',
    void: 'This card is no longer valid.',
    /** VoiceOver reads this out. */
    description: (card: string, store: string) => `Stamp card “${card}” of ${store}`,
  },
  googlePass: {
    member: 'Member',
    /** Label of the code beneath the barcode. */
    code: 'Card code',
    /** Label of the number of stamps that are missing. */
    toReward: 'To next reward',
    /** Heading of the rewards that the customer can redeem now. */
    ready: 'Ready for you',
    unlocked: 'Reward unlocked',
    page: 'Card in the browser',
  },
  /**
   * The message with the link to a card. `store` and `link` come ready to be shown. Nothing else varies: text that a
   * stranger typed into a form must not reach anybody through it.
   */
  cardMessage: {
    subject: (store: string) => `Your stamp card from ${store}`,
    intro: (store: string) => `Here is your stamp card from ${store}.`,
    /** The label of the button; the plain text has the link itself. */
    open: 'Open my card',
    /** Says how to use the page behind the link. */
    advice:
      'Open it on your phone to add it to Apple Wallet or Google Wallet, or use it right in the browser. Keep the link to yourself: whoever has it can show your card.',
    /** Explains the mail to a person who did not sign up. */
    why: (store: string) =>
      `You are getting this e-mail because somebody gave your address for a stamp card from ${store}. If it was not you, you need not do anything.`,
    /** An SMS in GSM-7 characters. The shorter it is, the more room is left for the name of the store. */
    sms: (store: string, link: string) => `Your stamp card from ${store}: ${link}`,
  },
  /** The e-mail about a webhook subscription that fails. */
  failingMail: {
    /** The locale of its dates. */
    dates: 'en-GB',
    warning: {
      subject: (store: string, host: string) => `${store}: webhooks to ${host} are failing`,
      intro: (host: string, since: string, disabledAt: string) =>
        `Nothing that was sent to ${host} has been accepted${since}.\nIf that goes on, the subscription will be disabled at ${disabledAt}.`,
      sendAgain: '- Send what was missed again; the first success keeps the subscription enabled:',
    },
    disabled: {
      subject: (store: string, host: string) => `${store}: webhooks to ${host} were disabled`,
      intro: (host: string, disabledAt: string, reason: string) =>
        `The webhook subscription to ${host} was disabled at ${disabledAt}: ${reason}.\nNothing is sent there any more.`,
      sendAgain: '- Send what was missed again:',
    },
    since: (time: string) => ` since ${time}`,
    blockedReason: 'its host name does not resolve to a public address',
    failingReason: (since: string) => `nothing was accepted${since}`,
    store: (name: string) => `Store: ${name}`,
    subscription: (name: string) => `Webhook subscription: ${name}`,
    lastResponse: (status: string | null) => `Last response: ${status ?? 'none'}`,
    lastError: (error: string) => `Last error: ${error}`,
    steps: 'What to do:',
    checkName: '- Check that the host name resolves to the address of the receiver.',
    checkReceiver: '- Check that the receiver responds with a 2xx status within ten seconds.',
    test: (request: string) => `- Try it: ${request}`,
    enable: (request: string) => `- Enable it: ${request}`,
  },
  /** The e-mail about a version of the API that ends. */
  retirementMail: {
    /** The locale of its dates. */
    dates: 'en-GB',
    /** @param end its day, if it is decided */
    subject: (host: string, version: string, end: string | null) =>
      `${host}: version ${version} of the API ${end === null ? 'is being retired' : `ends on ${end}`}`,
    reminder: (subject: string) => `Reminder: ${subject}`,
    greeting: (name: string) => `Hello ${name},`,
    intro: (version: string, url: string) =>
      `version ${version} of the API at ${url} is being retired.`,
    deprecatedFrom: (day: string) => `Deprecated from: ${day}`,
    end: (day: string, time: string, url: string) =>
      `Ends on: ${day}, ${time} UTC\n\nFrom then on every request to ${url} is refused with 410 and the code\nversion_sunset.`,
    noEnd: 'Ends on: not decided yet. There will be another e-mail when it is.',
    tokens: (days: number) => `API tokens of yours have used it in the last ${days} days:`,
    token: (name: string, day: string) => `- ${name}, last on ${day}`,
    otherTokens: '- and others',
    steps: (url: string) => `What to do:
- Find the programs that use these tokens, and move them to a newer version in time.
- How versions end, and where things stand: ${url}/docs/versioning
- Your tokens: ${url}/app`,
  },
  signup: {
    intro: (card: string) =>
      `Get ${/^the\b/i.test(card) ? '' : 'the '}${card} on your phone – no app needed.`,
    /** What a card is rewarded with. */
    offer: (text: string, count: number) => `for ${stamps(text, count)}`,
    welcome: (text: string, count: number) => `You start with ${stamps(text, count)}.`,
    /** Says which card the picture shows. */
    preview: (card: string) => `Your ${card}`,
    day: 'Day',
    month: 'Month',
    year: 'Year',
    /** A phone that has signed up before. */
    already: 'You already have this card',
    alreadyWhy: (card: string) => `This phone has signed up for ${card} before.`,
    openCard: 'Open my card',
    someoneElse: 'Sign up someone else',
    firstName: 'First name',
    lastName: 'Last name',
    email: 'E-mail',
    phone: 'Phone',
    birthday: 'Birthday',
    optional: 'optional',
    /** The hint when either contact is enough. */
    eitherContact: 'An e-mail address or a phone number is enough.',
    minimumAge: (years: string) => `You need to be ${years} or older.`,
    privacy: 'Privacy policy',
    submit: 'Get the card',
    /** The label of the hidden trap field. */
    leaveEmpty: 'Leave this field empty',
    fieldErrors: {
      nameMissing: 'Please enter your first name.',
      nameUnfit: 'Please enter a name without links or addresses.',
      emailMissing: 'Please enter your e-mail address.',
      emailUnfit: 'Please enter a valid e-mail address, such as anna@example.com.',
      phoneMissing: 'Please enter your phone number.',
      phoneUnfit: 'That doesn’t look like a phone number. Please check it.',
      phoneWithoutCountry: 'Please begin with the country code, such as +44.',
      birthdayMissing: 'Please enter your birthday.',
      birthdayUnfit: 'Please enter day, month and year in numbers, such as 31, 5 and 1990.',
      birthdayFuture: 'This day is still to come. Please check the year.',
    },
    formErrors: {
      marked: 'Please check the fields marked in red.',
      contactMissing: 'Please enter an e-mail address or a phone number.',
      textsChanged: 'The texts beside the boxes have just changed. Please read them again.',
      filledTrap: 'Please send the form again, with the field at its end left empty.',
      stale: 'The page was too old. Please send the form once more.',
    },
    tooMany: (minutes: string, count: number) =>
      `Many people are signing up here right now. Please try again in ${minutes} ${count === 1 ? 'minute' : 'minutes'}.`,
    elsewhere: 'This form came from another site',
    elsewhereWhy: 'For your safety we did not accept it. Please scan the code on the poster again.',
    gone: 'This poster is no longer in use',
    goneWhy: 'The link may also be incomplete. Please ask at the shop for a new one.',
    closed: 'Sign-up is closed right now',
    closedWhy: 'Please ask at the shop. Cards that people have stay as they are.',
  },
  poster: {
    /** Replaces a title that no font can draw. */
    stampCard: 'Stamp card',
    offer: (text: string, count: number) => `for ${stamps(text, count)}`,
    collect: (text: string, count: number) => `Collect ${stamps(text, count)}`,
    scan: 'Scan for your stamp card',
    signUp: 'Get your stamp card',
    /** The heading of the files to print. */
    download: 'Poster to print',
    otherSizes: 'Other sizes',
    paperSize: 'Paper',
    /** Bleed is the margin that a print shop cuts off. */
    withBleed: 'PDF with bleed and crop marks',
  },
  history: {
    issued: 'card issued',
    welcome: (text: string, count: number) => `${stamps(text, count)} as a welcome`,
    /** By a correction. */
    credited: (text: string, count: number) => `correction: ${stamps(text, count)} added`,
    removed: (text: string, count: number) => `correction: ${stamps(text, count)} taken off`,
    unlocked: (reward: string) => `reward “${reward}” unlocked`,
    redeemed: (reward: string, text: string, count: number) =>
      `reward “${reward}” redeemed for ${stamps(text, count)}`,
    /** To another customer. */
    moved: 'card handed over to another customer',
    /** Into another card. */
    merged: 'card merged into another one',
    /** Another card into this one. */
    absorbed: 'another card merged into this one',
    unmerged: 'merge of cards undone',
    /** Entries that are not shown one by one. */
    earlier: (text: string, count: number) =>
      `${text} earlier ${count === 1 ? 'entry' : 'entries'}`,
    at: (location: string) => `at ${location}`,
    by: (who: string) => `by ${who}`,
    receipt: (number: string) => `receipt ${number}`,
    /** @param when date and time of the entry that this one undoes */
    reverses: (when: string) => `undoes the entry of ${when}`,
    /** @param when date and time of the entry that undid this one */
    reversed: (when: string) => `undone on ${when}`,
  },
  errorPage: {
    notFound: 'This page does not exist',
    notFoundWhy: 'The link may be incomplete, or the page was removed.',
    forbidden: 'You don’t have access to this page',
    forbiddenWhy: 'Please ask an owner of the store.',
    tooMany: 'Too many requests',
    /** @param wait the duration in the language, such as "1 second" */
    tooManyWhy: (wait: string) => `Please try again in ${wait}.`,
    maintenance: 'Maintenance is going on',
    maintenanceWhy:
      'Nothing can be changed for a while; everything can still be viewed. Please try again later.',
    unavailable: 'Not available right now',
    unavailableWhy: 'Nothing saved earlier was lost.',
    historyUnavailable: 'The history cannot be reached right now',
    historyUnavailableWhy:
      'Stamps, changes and the history have to wait; everything else can still be viewed. Nothing saved earlier was lost.',
    checkBeforeSending:
      'Before you send it again, please check in a moment whether what you have just sent was saved.',
    tryAgain: 'Please try again in a moment.',
    historyDamaged: 'The history of this record is damaged',
    historyDamagedWhy:
      'This record cannot be changed, or its past cannot be read, until whoever runs the service has repaired it. Trying again does not help. Everything else goes on.',
    unsettled: 'We do not know whether this was saved',
    unsettledWhy: 'Please go back, reload the page and check before you try again.',
    broken: 'Something went wrong',
    brokenWhy: 'The error is ours and has been logged. Please try again.',
    refused: 'This did not work',
    refusedWhy: 'Please go back and check what you entered.',
    requestNumber: (id: string) => `Request ${id}`,
    /** The link to the page at `/`. */
    start: 'Go to the start page',
    documentation: 'Go to the documentation',
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

/** The texts of one language. */
export type Translations = typeof en;
