import { renderZonedTime } from '#platform/kernel/zoned-time.js';
import { getCustomerTranslations, type Translations } from '#translations/translations.js';
import { isExpired } from '#loyalty/cards/card.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import type { WrittenNotification } from '#outbound/passes/pass-notification.js';
import { renderBackFields } from './apple-back.js';
import { arrangeFront, listRowFields, type Front } from './apple-front.js';
import { BARCODE_TYPES, type PassBarcode, type PassField, type PassJson } from './pass-json.js';

/** The last change of a pass and its notification (`Pass` of `#passes`). */
export type LastChange = {
  notification: Pick<WrittenNotification, 'text' | 'hasCount'> | null;
  balanceTag: number;
  notificationTag: number;
};

/** The issuer of a pass, and how a phone requests it again. */
export type Issuer = {
  /** Of the service, without a trailing slash. */
  publicUrl: string;
  /** The width of the store's logo in points; null without one. */
  logoWidth: number | null;
  passTypeId: string;
  teamId: string;
  /** The phone appends /v1/… */
  webServiceUrl: string;
  token: string;
};

/**
 * Renders pass.json. The stamps are the strip image, so there are no primary fields, which would cover it. Names, header
 * text and balance are above it. Member, stamps to the reward and the store's two fields are below, as far as they fit.
 * The rest is on the back.
 */
export function renderApplePass(
  content: PassContent,
  lastChange: LastChange,
  issuer: Issuer,
  now: Date,
): PassJson {
  const { t, locale } = getCustomerTranslations(content);
  const { card, state, storeName } = content;
  const isVoid = state === 'void' || isExpired(content, now);
  const textColor = toRgb(card.textColor);
  const front = arrangeFront({
    storeName,
    cardName: card.name,
    logoWidth: content.logo === null ? null : issuer.logoWidth,
    logoContainsName: content.logoContainsName,
    headerText: card.headerText,
    count: renderCount(content, t),
    row: listRowFields({ ...content, auxiliaryFields: card.auxiliaryFields }, t),
  });
  return {
    formatVersion: 1,
    passTypeIdentifier: issuer.passTypeId,
    teamIdentifier: issuer.teamId,
    serialNumber: content.uuid,
    organizationName: storeName,
    description: t.applePass.description({ card: card.name, store: storeName }),
    ...(front.title !== null && { logoText: front.title }),
    backgroundColor: toRgb(card.cardColor),
    foregroundColor: textColor,
    labelColor: textColor,
    webServiceURL: issuer.webServiceUrl,
    authenticationToken: issuer.token,
    sharingProhibited: true,
    barcodes: renderBarcodes(content),
    // A card that is no longer valid does not belong on a lock screen.
    ...(!isVoid && content.locations.length > 0 && { locations: toPassPlaces(content) }),
    ...(content.expiresAt !== null && {
      expirationDate: renderZonedTime(content.expiresAt, content.timeZone),
    }),
    ...(isVoid && { voided: true }),
    storeCard: {
      headerFields: front.header,
      primaryFields: [],
      secondaryFields: front.secondary,
      auxiliaryFields: front.auxiliary,
      backFields: [
        renderNewsField(content, lastChange, t),
        ...listMovedFields(front, content, t),
        ...renderBackFields(content, issuer.publicUrl, { t, locale }),
      ],
    },
  };
}

function renderBarcodes({ code, card: { barcodeFormat } }: PassContent): PassBarcode[] {
  const renderBarcode = (format: PassBarcode['format']): PassBarcode => ({
    format,
    message: code,
    messageEncoding: 'iso-8859-1',
    altText: code,
  });
  return [
    renderBarcode(BARCODE_TYPES[barcodeFormat]),
    // A watch cannot show a Code 128. It shows the first one that it can.
    ...(barcodeFormat === 'code128' ? [renderBarcode(BARCODE_TYPES.qr)] : []),
  ];
}

/** Renders the balance. "13/10" would look like a fault: more stamps than a card has are just a number. */
function renderCount({ card: { stampsRequired }, stampsCount }: PassContent, t: Translations) {
  const isSurplus = stampsCount > stampsRequired;
  return {
    key: 'stamps',
    label: t.stamps.label,
    value: isSurplus ? String(stampsCount) : `${stampsCount}/${stampsRequired}`,
  };
}

/** Lists what the front has no room for. */
function listMovedFields(
  { moved, isStoreShortened, isCardShortened }: Front,
  { storeName, card }: PassContent,
  t: Translations,
): PassField[] {
  return [
    ...(isStoreShortened ? [{ key: 'store', label: t.applePass.store, value: storeName }] : []),
    ...(isCardShortened ? [{ key: 'card', label: t.applePass.card, value: card.name }] : []),
    ...moved,
  ];
}

/**
 * Renders the only field that notifies. Its value depends on nothing but the balance and its last notification, whose text was
 * written then, so that a change of the layout, a name or a colour does not notify the customer.
 */
function renderNewsField(
  { state, stampsCount }: PassContent,
  { notification, notificationTag, balanceTag }: LastChange,
  t: Translations,
): PassField {
  const field = { key: 'news', label: t.applePass.news };
  if (state === 'void') return { ...field, value: t.applePass.void };
  const balance = t.applePass.balance({ count: stampsCount });
  // The balance has changed silently since then.
  if (notification === null || notificationTag !== balanceTag) return { ...field, value: balance };
  const { text, hasCount } = notification;
  if (text === null) return { ...field, value: balance, changeMessage: '%@' };
  // A phone shows no message for a value that is the same again.
  const news = hasCount ? text : `${text}${isSentence(text) ? ' ' : '\n'}${balance}`;
  return { ...field, value: news, changeMessage: '%@' };
}

function isSentence(text: string): boolean {
  return /[.!?…。！？]$/u.test(text);
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
