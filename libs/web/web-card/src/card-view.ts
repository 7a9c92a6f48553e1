import { formatCount, getTranslations, type Localization } from '#translations/translations.js';
import { isExpired } from '#cards/card.js';
import type { PassContent, PassReward } from '#passes/pass-content.js';
import { findDarkModules } from './qr-modules.js';

/** Links the card's strip image in three resolutions. */
export type StripLinks = { '1x': string; '2x': string; '3x': string };

export type CardViewInput = {
  content: PassContent;
  /** The pass's tag, which rises with every visible change. */
  tag: number;
  /**
   * Set right after signing up, because the customer may have had a card before (ADR-0051).
   * @property isLinkSent whether a message with its link is sent
   */
  joined: { isLinkSent: boolean } | null;
  now: Date;
  /** The wallets that are configured and that the visitor's device can have. */
  wallets: { apple: boolean; google: boolean };
  strip: StripLinks;
  /** A square PNG with the card's icon. */
  logo: string;
  /** The key for subscribing to notifications; null without them. */
  pushKey: string | null;
};

/** Collects what the page of a card shows: values, and texts in the language of the store. */
export function createCardView(input: CardViewInput) {
  const { content, tag, joined, now, strip, logo, pushKey } = input;
  const localization = getTranslations(content.locale);
  const { locale } = localization;
  const t = localization.t.card;
  const { card, code, stampsCount, expiresAt } = content;
  const isEnded = content.state === 'void' || isExpired(content, now);
  const numbers = new Intl.NumberFormat(locale);
  const asOf = { dateStyle: 'medium', timeStyle: 'short', timeZone: content.timeZone } as const;
  return {
    lang: locale,
    title: `${card.name} · ${content.storeName}`,
    path: `/passes/${content.uuid}`,
    color: card.cardColor,
    tag,
    summary: summarize(content, localization),
    pushKey,
    logo,
    strip,
    isEnded,
    stampsCount,
    name: card.name,
    header: card.headerText ?? content.storeName,
    offline: t.offline(new Intl.DateTimeFormat(locale, asOf).format(now)),
    joined: joined && {
      title: t.joined,
      text: joined.isLinkSent ? t.joinedWhy : t.joinedWithoutLink,
    },
    expired:
      expiresAt !== null && isExpired(content, now)
        ? t.expired(formatDay(expiresAt, content, localization))
        : null,
    balance: {
      label: localization.t.stamps.label,
      text: `${numbers.format(stampsCount)} / ${numbers.format(card.stampsRequired)}`,
    },
    fields: listFields(content, isEnded, localization),
    code: {
      ...findDarkModules(code, 'M'),
      text: code,
      label: t.qrCode(code),
      hint: isEnded ? '' : t.showCode,
    },
    rewards: {
      title: t.rewards,
      list: content.rewards.map((reward) => ({
        ...reward,
        isReady: reward.available,
        state: isEnded ? null : describeReward(reward, stampsCount, localization),
      })),
    },
    buttons: isEnded ? null : listButtons(input, localization),
  };
}

function listFields(
  { memberName, stampsToReward, card }: PassContent,
  isEnded: boolean,
  localization: Localization,
): { label: string | null; value: string }[] {
  const t = localization.t.card;
  return [
    ...(memberName === null ? [] : [{ label: t.member, value: memberName }]),
    ...(isEnded || stampsToReward === null || stampsToReward === 0
      ? []
      : [
          {
            label: t.toReward,
            value: formatCount(localization.t.stamps.count, stampsToReward, localization),
          },
        ]),
    ...card.auxiliaryFields,
  ];
}

function describeReward(
  { available, stampsRequired }: PassReward,
  stampsCount: number,
  localization: Localization,
): string {
  const t = localization.t.card;
  return available ? t.ready : formatCount(t.toGo, stampsRequired - stampsCount, localization);
}

/** Lists the buttons for wallets, installation and notifications. */
function listButtons({ content, wallets }: CardViewInput, localization: Localization) {
  const t = localization.t.card;
  return {
    title: t.onYourPhone,
    wallets: [
      ...(wallets.apple ? [{ vendor: 'apple', text: t.addToApple }] : []),
      ...(wallets.google ? [{ vendor: 'google', text: t.addToGoogle }] : []),
    ],
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
        : t.validUntil(formatDay(content.expiresAt, content, localization)),
  };
}

/** Describes the balance in one sentence. */
export function summarize(
  { stampsCount, card: { stampsRequired } }: PassContent,
  localization: Localization,
): string {
  const { locale } = localization;
  const t = localization.t.card;
  if (stampsCount > stampsRequired)
    return formatCount(localization.t.stamps.count, stampsCount, localization);
  const numbers = new Intl.NumberFormat(locale);
  return t.stampsOf(numbers.format(stampsCount), numbers.format(stampsRequired));
}

function formatDay(at: string, { timeZone }: PassContent, { locale }: Localization): string {
  return new Intl.DateTimeFormat(locale, { timeZone, dateStyle: 'long' }).format(new Date(at));
}
