import { renderZonedTime } from '#kernel/zoned-time.js';
import type { Translations } from '#translations/en.js';
import { getTranslations } from '#translations/translations.js';
import { isExpired } from '#cards/card.js';
import type { PassContent } from '#passes/pass-content.js';
import type { PassField, PassJson } from './pass-json.js';

/** The last change of a pass and its notice (`Pass` of `#passes`). */
export type LastChange = {
  notice:
    | { kind: 'stamped'; stamps: number }
    | { kind: 'unlocked'; rewardName: string }
    | { kind: 'redeemed'; rewardName: string }
    | null;
  balanceTag: number;
  noticeTag: number;
};

/** The issuer of a pass, and how a phone requests it again. */
export type Issuer = {
  passTypeId: string;
  teamId: string;
  /** The phone appends /v1/… */
  webServiceUrl: string;
  token: string;
};

/**
 * Renders pass.json. The stamps are the strip image, so there are no primary fields, which would cover it. Header text
 * and balance are above it. Member, stamps to the reward and the store's two fields are below. The rest is on the back.
 */
export function renderApplePass(
  content: PassContent,
  lastChange: LastChange,
  issuer: Issuer,
  now: Date,
): PassJson {
  const { t, locale } = getTranslations(content.locale);
  const { card, state, storeName } = content;
  const isVoid = state === 'void' || isExpired(content, now);
  const textColor = toRgb(card.textColor);
  return {
    formatVersion: 1,
    passTypeIdentifier: issuer.passTypeId,
    teamIdentifier: issuer.teamId,
    serialNumber: content.uuid,
    organizationName: storeName,
    description: t.applePass.description(card.name, storeName),
    // A logo has the name of the store in it.
    logoText: content.logo === null ? storeName : card.name,
    backgroundColor: toRgb(card.cardColor),
    foregroundColor: textColor,
    labelColor: textColor,
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
    // A card that is no longer valid does not belong on a lock screen.
    ...(!isVoid && content.locations.length > 0 && { locations: toPassPlaces(content) }),
    ...(content.expiresAt !== null && {
      expirationDate: renderZonedTime(content.expiresAt, content.timeZone),
    }),
    ...(isVoid && { voided: true }),
    storeCard: {
      headerFields: renderHeaderFields(content, t),
      primaryFields: [],
      secondaryFields: renderSecondaryFields(content, t),
      auxiliaryFields: renderAuxiliaryFields(content),
      backFields: [
        renderNewsField(content, lastChange, t, locale),
        ...renderBackFields(content, t, locale),
      ],
    },
  };
}

/** Renders at most two fields, with the balance at the edge. */
function renderHeaderFields({ card, stampsCount }: PassContent, t: Translations): PassField[] {
  const count = {
    key: 'stamps',
    label: t.stamps.label,
    // "13/10" would look like a fault: more stamps than a card has are just a number.
    value:
      stampsCount > card.stampsRequired
        ? String(stampsCount)
        : `${stampsCount}/${card.stampsRequired}`,
  };
  return card.headerText ? [{ key: 'header', value: card.headerText }, count] : [count];
}

function renderSecondaryFields(
  { memberName, stampsToReward }: PassContent,
  t: Translations,
): PassField[] {
  return [
    ...(memberName === null
      ? []
      : [{ key: 'member', label: t.applePass.member, value: memberName }]),
    ...(stampsToReward === null
      ? []
      : [{ key: 'to_reward', label: t.applePass.toReward, value: stampsToReward }]),
  ];
}

function renderAuxiliaryFields({ card: { auxiliaryFields: fields } }: PassContent): PassField[] {
  // The keys are those of the API, aux_1 and aux_2 (CARD-25). No other field's key begins like them.
  return fields.map(({ key, label, value }) => ({ key, ...(label && { label }), value }));
}

/**
 * Renders the only field that notifies. Its value depends on nothing but the balance and its last notice, so that a
 * change of the layout, a name or a colour does not notify the customer.
 */
function renderNewsField(
  { state, stampsCount }: PassContent,
  { notice, noticeTag, balanceTag }: LastChange,
  t: Translations,
  locale: string,
): PassField {
  const field = { key: 'news', label: t.applePass.news };
  if (state === 'void') return { ...field, value: t.applePass.void };
  const balance = t.applePass.balance(formatNumber(locale, stampsCount), stampsCount);
  // The balance has changed silently since then.
  if (notice === null || noticeTag !== balanceTag) return { ...field, value: balance };
  const news =
    notice.kind === 'stamped'
      ? balance
      : `${t.applePass[notice.kind](notice.rewardName)} ${balance}`;
  return { ...field, value: news, changeMessage: '%@' };
}

function renderBackFields(content: PassContent, t: Translations, locale: string): PassField[] {
  const { rewards, expiresAt, timeZone, locations, state } = content;
  const rewardLines = rewards.map(({ name, description, stampsRequired, available }) => {
    const line = t.wallet.reward(name, formatNumber(locale, stampsRequired), stampsRequired);
    return [available ? `${line} (${t.applePass.available})` : line, description]
      .filter(Boolean)
      .join('\n');
  });
  const shops = [...new Set(locations.map(({ name }) => name))];
  return [
    ...(rewardLines.length === 0
      ? []
      : [{ key: 'rewards', label: t.wallet.rewards, value: rewardLines.join('\n\n') }]),
    ...(expiresAt === null
      ? []
      : [
          {
            key: 'expires',
            label: t.applePass.expires,
            value: renderZonedTime(expiresAt, timeZone),
            dateStyle: 'PKDateStyleMedium' as const,
            timeStyle: 'PKDateStyleNone' as const,
            ignoresTimeZone: true as const,
          },
        ]),
    ...(shops.length === 0 || state === 'void'
      ? []
      : [{ key: 'shops', label: t.applePass.shops, value: shops.join('\n') }]),
    ...renderContactFields(content, t),
  ];
}

/** Renders how to reach the store. Phones make links of addresses and numbers on the back by themselves. */
function renderContactFields({ contact }: PassContent, t: Translations): PassField[] {
  const { website, phone, email, address, termsText } = contact;
  const fields = { website, phone, email, address, terms: termsText };
  return Object.entries(fields).flatMap(([name, value]) =>
    value === null ? [] : [{ key: name, label: t.contact[name as keyof typeof fields], value }],
  );
}

function toPassPlaces({ locations, storeName }: PassContent) {
  return locations.map(({ name, latitude, longitude }) => ({
    latitude,
    longitude,
    relevantText: name || storeName,
  }));
}

/** Converts a colour. @param hex as #rrggbb or #rgb, the formats that a card may have */
function toRgb(hex: string): string {
  const digits = hex.slice(1);
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit).join('') : digits;
  const parts = [0, 2, 4].map((index) => Number.parseInt(full.slice(index, index + 2), 16));
  return `rgb(${parts.join(', ')})`;
}

function formatNumber(locale: string, count: number): string {
  return new Intl.NumberFormat(locale).format(count);
}
