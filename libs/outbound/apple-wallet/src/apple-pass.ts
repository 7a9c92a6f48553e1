import { zonedTime } from '#kernel/zoned-time.js';
import { isExpired } from '#cards/card.js';
import type { PassContent } from '#passes/pass-content.js';
import type { PassField, PassJson } from './pass-json.js';
import type { Words } from './words-en.js';
import { wordsOf } from './words.js';

/** What is told of the last change (`Pass` of `#passes`). */
export type Told = {
  notice:
    | { kind: 'stamped'; stamps: number }
    | { kind: 'unlocked'; rewardName: string }
    | { kind: 'redeemed'; rewardName: string }
    | null;
  balanceTag: number;
  noticeTag: number;
};

/** Who issues the pass, and how a phone asks for it again. */
export type Issuer = {
  passTypeId: string;
  teamId: string;
  /** The phone appends /v1/… */
  webServiceUrl: string;
  token: string;
};

/**
 * The layout: the stamps are the strip image, so that no primary field covers it; header text and balance above it,
 * member and distance to the reward below, beside the two fields of the store; everything else on the back.
 */
export function applePass(content: PassContent, told: Told, issuer: Issuer, now: Date): PassJson {
  const { words, locale } = wordsOf(content.locale);
  const { card, state, storeName } = content;
  const isVoid = state === 'void' || isExpired(content, now);
  const text = rgbOf(card.textColor);
  return {
    formatVersion: 1,
    passTypeIdentifier: issuer.passTypeId,
    teamIdentifier: issuer.teamId,
    serialNumber: content.uuid,
    organizationName: storeName,
    description: words.description(card.name, storeName),
    logoText: storeName,
    backgroundColor: rgbOf(card.cardColor),
    foregroundColor: text,
    labelColor: text,
    webServiceURL: issuer.webServiceUrl,
    authenticationToken: issuer.token,
    sharingProhibited: true,
    barcodes: [
      {
        format: 'PKBarcodeFormatQR',
        message: content.code,
        messageEncoding: 'iso-8859-1',
        altText: content.code,
      },
    ],
    // A card that is no longer valid has no business on a lock screen.
    ...(!isVoid && content.locations.length > 0 && { locations: placesOf(content) }),
    ...(content.expiresAt !== null && {
      expirationDate: zonedTime(content.expiresAt, content.timeZone),
    }),
    ...(isVoid && { voided: true }),
    storeCard: {
      headerFields: headerFields(content, words),
      primaryFields: [],
      secondaryFields: secondaryFields(content, words),
      auxiliaryFields: auxiliaryFields(content),
      backFields: [newsField(content, told, words, locale), ...backFields(content, words, locale)],
    },
  };
}

/** Two, of which the balance stands at the edge. */
function headerFields({ card, stampsCount }: PassContent, words: Words): PassField[] {
  const count = {
    key: 'stamps',
    label: words.stamps,
    value: `${stampsCount}/${card.stampsRequired}`,
  };
  return card.headerText ? [{ key: 'header', value: card.headerText }, count] : [count];
}

function secondaryFields({ memberName, stampsToReward }: PassContent, words: Words): PassField[] {
  return [
    ...(memberName === null ? [] : [{ key: 'member', label: words.member, value: memberName }]),
    ...(stampsToReward === null
      ? []
      : [{ key: 'to_reward', label: words.toReward, value: stampsToReward }]),
  ];
}

function auxiliaryFields({ card: { auxiliaryFields: fields } }: PassContent): PassField[] {
  // The keys of the API, aux_1 and aux_2 (CARD-25): none of ours begins like them.
  return fields.map(({ key, label, value }) => ({ key, ...(label && { label }), value }));
}

/**
 * The only field that speaks up. Its value depends on nothing but the balance and what was last told of it: if the
 * layout, a name or a colour changes, it stays, and the phone keeps quiet.
 */
function newsField(
  { state, stampsCount }: PassContent,
  { notice, noticeTag, balanceTag }: Told,
  words: Words,
  locale: string,
): PassField {
  const field = { key: 'news', label: words.news };
  if (state === 'void') return { ...field, value: words.void };
  const balance = words.balance(numberIn(locale, stampsCount), stampsCount);
  // The balance has changed silently since then.
  if (notice === null || noticeTag !== balanceTag) return { ...field, value: balance };
  const news =
    notice.kind === 'stamped' ? balance : `${words[notice.kind](notice.rewardName)} ${balance}`;
  return { ...field, value: news, changeMessage: '%@' };
}

function backFields(content: PassContent, words: Words, locale: string): PassField[] {
  const { rewards, expiresAt, timeZone, locations, state } = content;
  const listed = rewards.map(({ name, description, stampsRequired, available }) => {
    const line = words.reward(name, numberIn(locale, stampsRequired), stampsRequired);
    return [available ? `${line} (${words.available})` : line, description]
      .filter(Boolean)
      .join('\n');
  });
  const shops = [...new Set(locations.map(({ name }) => name))];
  return [
    ...(listed.length === 0
      ? []
      : [{ key: 'rewards', label: words.rewards, value: listed.join('\n\n') }]),
    ...(expiresAt === null
      ? []
      : [
          {
            key: 'expires',
            label: words.expires,
            value: zonedTime(expiresAt, timeZone),
            dateStyle: 'PKDateStyleMedium' as const,
            timeStyle: 'PKDateStyleNone' as const,
            ignoresTimeZone: true as const,
          },
        ]),
    ...(shops.length === 0 || state === 'void'
      ? []
      : [{ key: 'shops', label: words.shops, value: shops.join('\n') }]),
  ];
}

function placesOf({ locations, storeName }: PassContent) {
  return locations.map(({ name, latitude, longitude }) => ({
    latitude,
    longitude,
    relevantText: name || storeName,
  }));
}

/** @param hex as #rrggbb or #rgb, which the card's rules admit */
function rgbOf(hex: string): string {
  const digits = hex.slice(1);
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits;
  const parts = [0, 2, 4].map((at) => Number.parseInt(full.slice(at, at + 2), 16));
  return `rgb(${parts.join(', ')})`;
}

function numberIn(locale: string, count: number): string {
  return new Intl.NumberFormat(locale).format(count);
}
