import { coversAll } from '#loyalty/stamping/unlocked-rewards.js';
import { getCustomerTranslations, type Localization } from '#translations/translations.js';
import { toPhoneLink } from '#loyalty/accounts/contact-details.js';
import { isExpired } from '#loyalty/cards/card.js';
import type { ConsentKind } from '#loyalty/customers/customer.events.js';
import { CONSENT_PARAMETER } from '#outbound/messages/consent-links.js';
import type { PassContent, PassReward } from '#outbound/passes/pass-content.js';
import { findBars } from './code128-bars.js';
import type { Device } from './device.js';
import { findDarkModules } from './qr-modules.js';
import { joinNames } from '#web/pages/join-names.js';

/** An official button as pictures, with their paths. @property dark for dark mode, if the vendor has one */
export type WalletBadge = { light: string; dark: string | null };

/**
 * Links the card's strip image in three resolutions. Without the largest for a picture: that alone would take longer than
 * all of the rest, and shows no more behind stamps.
 */
export type StripLinks = { '1x': string; '2x': string; '3x': string | null };

export type CardViewInput = {
  content: PassContent;
  /** The pass's tag, which rises with every visible change. */
  tag: number;
  /**
   * Set right after signing up, because the customer may have had a card before (ADR-0051).
   * @property isLinkSent whether a message with its link is sent
   */
  joined: { isLinkSent: boolean } | null;
  /** The consent that the opened link asks for. */
  consent: { kind: ConsentKind; token: string; isConfirmed: boolean } | null;
  now: Date;
  device: Device;
  /** The wallets that are configured and that the visitor's device can have. */
  wallets: { apple: boolean; google: boolean };
  /** The vendors' official buttons, where the operator has them. */
  badges: { apple: WalletBadge | null; google: WalletBadge | null };
  /** Whether the card is in a wallet already. */
  isInstalled: boolean;
  /** The reward that was redeemed a moment ago. */
  redeemedReward: string | null;
  strip: StripLinks;
  /** The picture for links to the page, with its host. */
  picture: string;
  /** A square PNG with the store's logo or the card's icon. */
  icon: string;
  /** The store's logo on the card's colour, in two resolutions; null without one. */
  brand: { '1x': string; '2x': string; icon: string } | null;
  /** The key for subscribing to notifications; null without them. */
  pushKey: string | null;
};

/** Collects what the page of a card shows: values, and texts in the language of the store. */
export function createCardView(input: CardViewInput) {
  const { content, tag, joined, now, strip, picture, icon, brand, pushKey } = input;
  const localization = getCustomerTranslations(content);
  const { locale } = localization;
  const t = localization.t.card;
  const { card, code, stampsCount, expiresAt, storeName } = content;
  const isEnded = content.state === 'void' || isExpired(content, now);
  const asOf = { dateStyle: 'medium', timeStyle: 'short', timeZone: content.timeZone } as const;
  return {
    lang: locale,
    title: joinNames(card.name, storeName),
    about: t.about({ store: storeName }),
    picture,
    path: `/passes/${content.uuid}`,
    color: card.cardColor,
    tag,
    summary: summarize(content, localization),
    pushKey,
    icon,
    brand,
    storeName,
    strip,
    isEnded,
    stampsCount,
    name: card.name,
    header: card.headerText ?? (brand !== null && content.logoContainsName ? null : storeName),
    offline: t.offline({ when: new Intl.DateTimeFormat(locale, asOf).format(now) }),
    joined: joined && welcome(input, joined.isLinkSent, localization),
    news: input.consent && askForNews(input.consent, storeName, localization),
    expired:
      expiresAt !== null && isExpired(content, now)
        ? t.expired({ day: formatDay(expiresAt, content, localization) })
        : null,
    balance: describeBalance(content, localization),
    redeemed:
      input.redeemedReward === null
        ? null
        : { title: t.enjoy, text: t.redeemedNow({ reward: input.redeemedReward }) },
    ready: isEnded ? null : describeReadyRewards(content, localization),
    fields: listFields(content, localization),
    code: {
      ...drawCode(content),
      text: code,
      label: card.barcodeFormat === 'code128' ? t.barcode({ code }) : t.qrCode({ code }),
      hint: isEnded ? '' : t.showCode,
      enlarge: t.enlarge,
      close: t.close,
    },
    rewards: { title: t.rewards, list: listRewards(content, isEnded, localization) },
    buttons: isEnded ? null : listButtons(input, localization),
    contact: listContact(content, localization),
  };
}

/** Welcomes a customer who has just signed up: first with how to keep the card, in what their device is offered. */
function welcome(
  { content: { memberName }, wallets, device, isInstalled }: CardViewInput,
  isLinkSent: boolean,
  { t: { card: t } }: Localization,
): { title: string; text: string; notes: string[] } {
  const page = device === 'apple' ? 'home' : 'page';
  const wallet = wallets.apple ? 'apple' : wallets.google ? 'google' : page;
  return {
    title: memberName === null ? t.joined : t.joinedAs({ name: memberName }),
    text: isInstalled
      ? ''
      : t.joinedKeep({ way: wallets.apple && wallets.google ? 'wallets' : wallet }),
    notes: [isLinkSent ? t.joinedWhy : t.joinedWithoutLink, t.joinedBefore],
  };
}

/** Renders the question whether the customer wants news. @property question null: they have said yes, and get it */
function askForNews(
  { kind, token, isConfirmed }: NonNullable<CardViewInput['consent']>,
  store: string,
  { t: { card: t } }: Localization,
) {
  const channel = kind === 'sms' ? 'sms' : 'email';
  return isConfirmed
    ? { text: t.newsOn({ store, channel }), question: null }
    : {
        text: t.newsQuestion({ store, channel }),
        question: { field: CONSENT_PARAMETER, token, yes: t.newsYes },
      };
}

/**
 * Draws the code. Scanners that read an Aztec code or a PDF417 from a phone are cameras, which read QR codes too; those
 * that read lines only need a Code 128.
 */
function drawCode({ code, card }: PassContent): { path: string; width: number; height: number } {
  if (card.barcodeFormat === 'code128') return findBars(code);
  const { path, side } = findDarkModules(code, 'M');
  return { path, width: side, height: side };
}

/** Lists what passes show too, but for the stamps to the next reward: the list of rewards says that of each. */
function listFields(
  { memberName, card }: PassContent,
  { t: { card: t } }: Localization,
): { label: string | null; value: string }[] {
  const member = memberName === null ? [] : [{ label: t.member, value: memberName }];
  return [...member, ...card.auxiliaryFields];
}

/** @property note says what it means to have as many stamps as a card takes, or more */
function describeBalance(content: PassContent, localization: Localization) {
  const { stampsCount, card } = content;
  const numbers = new Intl.NumberFormat(localization.locale);
  const isSurplus = stampsCount > card.stampsRequired;
  return {
    label: localization.t.stamps.label,
    text: isSurplus
      ? numbers.format(stampsCount)
      : `${numbers.format(stampsCount)} / ${numbers.format(card.stampsRequired)}`,
    note: stampsCount < card.stampsRequired ? null : summarize(content, localization),
  };
}

function listRewards(
  { rewards, stampsCount }: PassContent,
  isEnded: boolean,
  localization: Localization,
) {
  return rewards.map((reward) => ({
    ...reward,
    isReady: reward.available,
    cost: localization.t.card.costs({ count: reward.stampsRequired }),
    state: isEnded ? null : describeReward(reward, stampsCount, localization),
  }));
}

/** Describes the rewards that can be redeemed now, and what they take. */
function describeReadyRewards({ rewards, stampsCount }: PassContent, localization: Localization) {
  const t = localization.t.card;
  const ready = rewards.filter(({ available }) => available);
  if (ready.length === 0) return null;
  const isForAll = coversAll(
    stampsCount,
    ready.map(({ stampsRequired }) => stampsRequired),
  );
  return {
    title: ready.length === 1 ? t.rewardReady : isForAll ? t.rewardsReady : t.rewardChoice,
    how: t.howToRedeem,
    list: ready.map(({ name, stampsRequired }) => ({
      name,
      uses: t.uses({ count: stampsRequired }),
    })),
  };
}

/** Lists how to reach the store; null when it does not say. */
function listContact({ contact }: PassContent, { t }: Localization) {
  const { website, phone, email, address, termsText } = contact;
  const links = [
    ...(website === null
      ? []
      : [{ label: t.contact.website, href: website, text: showWebsite(website) }]),
    ...(phone === null ? [] : [{ label: t.contact.phone, href: toPhoneLink(phone), text: phone }]),
    ...(email === null ? [] : [{ label: t.contact.email, href: `mailto:${email}`, text: email }]),
  ];
  if (links.length === 0 && address === null && termsText === null) return null;
  return {
    title: t.contact.title,
    links,
    address: address && { label: t.contact.address, lines: address.split('\n') },
    terms: termsText && { label: t.contact.terms, lines: termsText.split('\n') },
  };
}

/** Leaves out what everybody knows: `https://www.cafe.example/` is `cafe.example`. */
function showWebsite(url: string): string {
  const { host, pathname, search } = new URL(url);
  return `${host.replace(/^www[.]/, '')}${pathname === '/' ? '' : pathname}${search}`;
}

function describeReward(
  { available, stampsRequired }: PassReward,
  stampsCount: number,
  localization: Localization,
): string {
  const t = localization.t.card;
  return available ? t.ready : t.toGo({ count: stampsRequired - stampsCount });
}

/** Lists the buttons for wallets, installation and notifications. */
function listButtons(input: CardViewInput, localization: Localization) {
  const { content, wallets, badges, isInstalled, joined } = input;
  const t = localization.t.card;
  return {
    title: t.onYourPhone,
    wallets: [
      ...(wallets.apple ? [{ vendor: 'apple', text: t.addToApple, badge: badges.apple }] : []),
      ...(wallets.google ? [{ vendor: 'google', text: t.addToGoogle, badge: badges.google }] : []),
    ],
    /** Whether they come first on the page, and whether they stay in view until one was used. */
    areFirst: joined !== null && !isInstalled,
    stay: !isInstalled,
    notNow: t.notNow,
    install: t.install,
    installByHand: t.installByHand,
    notify: {
      on: t.notifyMe,
      off: t.stopNotifying,
      blocked: t.notificationsBlocked,
      failed: t.notificationsFailed,
    },
    validUntil:
      content.expiresAt === null
        ? null
        : t.validUntil({ day: formatDay(content.expiresAt, content, localization) }),
  };
}

/** Describes the balance in one sentence. */
export function summarize(
  { stampsCount, card: { stampsRequired } }: PassContent,
  { t: { card: t } }: Localization,
): string {
  const need = stampsRequired;
  if (stampsCount < need) return t.stampsOf({ have: stampsCount, need });
  const fullCards = Math.floor(stampsCount / need);
  const rest = stampsCount % need;
  return rest === 0
    ? t.full({ cards: fullCards })
    : t.surplus({ cards: fullCards, have: rest, need });
}

function formatDay(at: string, { timeZone }: PassContent, { locale }: Localization): string {
  return new Intl.DateTimeFormat(locale, { timeZone, dateStyle: 'long' }).format(new Date(at));
}
