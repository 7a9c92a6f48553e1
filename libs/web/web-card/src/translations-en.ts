/** The texts of a web card. Numbers arrive formatted, together with the count for the plural. */
export type CardTranslations = {
  stamps: string;
  stampsOf: (have: string, need: string) => string;
  /** For more stamps than the card needs. */
  stampsBeyond: (have: string, count: number) => string;
  /** After signing up. */
  joined: string;
  joinedWhy: string;
  /** Instead of `joinedWhy`, if no message can be sent. */
  joinedWithoutLink: string;
  member: string;
  toReward: string;
  stampCount: (stamps: string, count: number) => string;
  rewards: string;
  ready: string;
  toGo: (stamps: string, count: number) => string;
  qrCode: (code: string) => string;
  showCode: string;
  validUntil: (day: string) => string;
  expired: (day: string) => string;
  onYourPhone: string;
  addToApple: string;
  addToGoogle: string;
  notifyMe: string;
  stopNotifying: string;
  /** In the browser's settings. */
  notificationsBlocked: string;
  notificationsFailed: string;
  install: string;
  /** For iPhones, where a page cannot offer to install it. */
  installByHand: string;
  offline: (when: string) => string;
  notFound: string;
  notFoundWhy: string;
  unavailable: string;
  unavailableWhy: string;
  noticeStamped: (stamps: string, count: number) => string;
  noticeUnlocked: (reward: string) => string;
  noticeRedeemed: (reward: string) => string;
};

const stamps = (text: string, count: number) => `${text} ${count === 1 ? 'stamp' : 'stamps'}`;

export const en: CardTranslations = {
  stamps: 'Stamps',
  stampsOf: (have, need) => `${have} of ${need} stamps`,
  stampsBeyond: stamps,
  joined: 'Welcome!',
  joinedWhy:
    'A link to your card is on its way to you. If you had a card here before, the link opens that card with its stamps: please use that card instead of this one.',
  joinedWithoutLink:
    'No link to your card can be sent to the address or number that you entered. Please add the card to your wallet, or save this page. If you had a card here before, ask for it at the counter.',
  member: 'Member',
  toReward: 'Next reward in',
  stampCount: stamps,
  rewards: 'Rewards',
  ready: 'Ready to redeem',
  toGo: (text, count) => `${stamps(text, count)} to go`,
  qrCode: (code) => `QR code of the card ${code}`,
  showCode: 'Show this code at the counter',
  validUntil: (day) => `Valid until ${day}`,
  expired: (day) => `This card expired on ${day}.`,
  onYourPhone: 'On your phone',
  addToApple: 'Add to Apple Wallet',
  addToGoogle: 'Add to Google Wallet',
  notifyMe: 'Tell me about new stamps',
  stopNotifying: 'Stop notifications',
  notificationsBlocked: 'Notifications from this page are blocked in your browser’s settings.',
  notificationsFailed: 'Notifications could not be switched on. Please try again later.',
  install: 'Add to home screen',
  installByHand: 'To have the card at hand, tap “Share” and then “Add to Home Screen”.',
  offline: (when) => `No connection. This is your card as of ${when}.`,
  notFound: 'This card does not exist',
  notFoundWhy: 'The link may be incomplete, or the card was deleted. Please ask at the shop.',
  unavailable: 'The card cannot be shown right now',
  unavailableWhy: 'Please try again in a moment. Your stamps are safe.',
  noticeStamped: (text, count) => `${stamps(text, count)} added`,
  noticeUnlocked: (reward) => `${reward}: ready to redeem!`,
  noticeRedeemed: (reward) => `${reward}: redeemed. Enjoy!`,
};
