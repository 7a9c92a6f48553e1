import { createHash } from 'node:crypto';
import { renderZonedTime } from '#platform/kernel/zoned-time.js';
import { toCanonicalJson } from '#platform/event-store/port/canonical-json.js';
import { getCustomerTranslations, type Translations } from '#translations/translations.js';
import { toPhoneLink } from '#loyalty/accounts/contact-details.js';
import type { BarcodeFormat } from '#loyalty/cards/card.events.js';
import { isExpired } from '#loyalty/cards/card.js';
import { limitRewards } from '#outbound/passes/limited-rewards.js';
import type { PassContent, PassLocation } from '#outbound/passes/pass-content.js';
import type { WrittenNotification } from '#outbound/passes/pass-notification.js';

/** The limit for one class and for one object. */
export const MAX_LOCATIONS = 10;
const MESSAGE_LIFETIME_MS = 24 * 60 * 60_000;
const CALLBACK_PATH = '/wallet/google/callback';

/** The installation that a pass belongs to: part of every id and of its links. */
export type GoogleInstallation = { issuerId: string; idSuffix: string; publicUrl: string };

/**
 * A class as in Google's REST reference, "REST Resource: loyaltyclass". A phone shows the pass near its
 * `merchantLocations`; the deprecated `locations` trigger nothing.
 */
export type LoyaltyClass = {
  id: string;
  issuerName: string;
  programName: string;
  programLogo: Image;
  /** Required in every update, otherwise Google refuses it. */
  reviewStatus: 'UNDER_REVIEW';
  hexBackgroundColor: string;
  accountNameLabel: string;
  accountIdLabel: string;
  textModulesData: TextModule[];
  /** Null: the front that Google gives to every loyalty card. */
  classTemplateInfo: { cardTemplateOverride: { cardRowTemplateInfos: TemplateRow[] } } | null;
  /** Null removes the links. */
  linksModuleData: Links | null;
  merchantLocations: Location[];
  multipleDevicesAndHoldersAllowedStatus: 'ONE_USER_ALL_DEVICES';
  callbackOptions: { url: string };
};

/**
 * An object as in "REST Resource: loyaltyobject". A patch merges fields, so fields to be removed are null.
 */
export type LoyaltyObject = {
  id: string;
  classId: string;
  state: 'ACTIVE' | 'EXPIRED' | 'INACTIVE';
  accountId: string | null;
  accountName: string | null;
  loyaltyPoints: Points | null;
  secondaryLoyaltyPoints: Points | null;
  barcode: { type: BarcodeType; value: string; alternateText: string } | null;
  heroImage: Image | null;
  textModulesData: TextModule[];
  linksModuleData: Links | null;
  validTimeInterval: { end: { date: string } } | null;
  merchantLocations: Location[];
  /** Set only to remove all messages. */
  messages?: [];
};

type BarcodeType = 'QR_CODE' | 'AZTEC' | 'PDF_417' | 'CODE_128';

const BARCODE_TYPES: Record<BarcodeFormat, BarcodeType> = {
  qr: 'QR_CODE',
  aztec: 'AZTEC',
  pdf417: 'PDF_417',
  code128: 'CODE_128',
};

type Image = {
  sourceUri: { uri: string };
  contentDescription: { defaultValue: { language: string; value: string } };
};
type Links = { uris: { id: string; uri: string; description: string }[] };
export type NotificationMessage = {
  id: string;
  header: string;
  body: string;
  displayInterval: { end: { date: string } };
};
type TextModule = { id: string; header: string; body: string };
type TemplateItem = { firstValue: { fields: { fieldPath: string }[] } };
/** A row of the front; there are at most three ("CardTemplateOverride"). */
type TemplateRow =
  | { oneItem: { item: TemplateItem } }
  | { twoItems: { startItem: TemplateItem; endItem: TemplateItem } };
type Points = { label: string; balance: { string: string } | { int: number } };
type Location = { latitude: number; longitude: number };

export function toClassId(cardId: number, { issuerId, idSuffix }: GoogleInstallation): string {
  return `${issuerId}.card_${cardId}_${idSuffix}`;
}

export function toObjectId(uuid: string, { issuerId, idSuffix }: GoogleInstallation): string {
  return `${issuerId}.cc_${uuid}_${idSuffix}`;
}

/** Parses the UUID of a customer card. @returns undefined for an object of another installation */
export function parseObjectId(
  id: string,
  { issuerId, idSuffix }: GoogleInstallation,
): string | undefined {
  const [prefix, suffix] = [`${issuerId}.cc_`, `_${idSuffix}`];
  if (!id.startsWith(prefix) || !id.endsWith(suffix)) return undefined;
  return id.slice(prefix.length, -suffix.length);
}

/**
 * Renders everything that is the same for all customers of a card, so that a change of it takes one request.
 * @param content of any customer card: the result does not depend on which
 * @param logo its public URL
 */
export function renderLoyaltyClass(
  content: PassContent,
  installation: GoogleInstallation,
  logo: string,
): LoyaltyClass {
  const { card, storeName, locale } = content;
  const { t } = getCustomerTranslations(content);
  return {
    id: toClassId(content.cardId, installation),
    issuerName: storeName,
    programName: card.name,
    programLogo: renderImage(logo, storeName, locale),
    reviewStatus: 'UNDER_REVIEW',
    hexBackgroundColor: card.cardColor,
    accountNameLabel: t.googlePass.member,
    accountIdLabel: t.googlePass.code,
    textModulesData: renderClassTexts(content, t),
    classTemplateInfo: renderFront(content),
    linksModuleData: renderContactLinks(content, t),
    merchantLocations: areShared(content.locations) ? toSortedLocations(content.locations) : [],
    multipleDevicesAndHoldersAllowedStatus: 'ONE_USER_ALL_DEVICES',
    callbackOptions: { url: `${installation.publicUrl}${CALLBACK_PATH}` },
  };
}

/** Renders the pass of one customer. @param hero public URL of the image with the stamps */
export function renderLoyaltyObject(
  content: PassContent,
  place: GoogleInstallation,
  hero: string,
  now: Date,
): LoyaltyObject {
  const ids = { id: toObjectId(content.uuid, place), classId: toClassId(content.cardId, place) };
  if (content.state === 'void') return renderVoidObject(ids);
  const { code, locale, stampsCount, card, memberName, expiresAt } = content;
  const { t } = getCustomerTranslations(content);
  // "13 / 10" would look like a fault: more stamps than a card has are just a number.
  const balance =
    stampsCount > card.stampsRequired
      ? String(stampsCount)
      : `${stampsCount} / ${card.stampsRequired}`;
  return {
    ...ids,
    state: isExpired(content, now) ? 'EXPIRED' : 'ACTIVE',
    accountId: code,
    accountName: memberName,
    loyaltyPoints: { label: t.stamps.label, balance: { string: balance } },
    secondaryLoyaltyPoints: renderSecondaryPoints(content, t),
    barcode: { type: BARCODE_TYPES[card.barcodeFormat], value: code, alternateText: code },
    heroImage: renderImage(hero, `${t.stamps.label}: ${balance}`, locale),
    textModulesData: renderAvailableTexts(content, t),
    linksModuleData: {
      uris: [
        {
          id: 'page',
          uri: `${place.publicUrl}/passes/${content.uuid}`,
          description: t.googlePass.page,
        },
      ],
    },
    validTimeInterval:
      expiresAt === null ? null : { end: { date: renderZonedTime(expiresAt, content.timeZone) } },
    merchantLocations: areShared(content.locations) ? [] : toSortedLocations(content.locations),
  };
}

/** Hashes a record. The hash is equal for records that Google shows alike. */
export function hashGoogleRecord(record: LoyaltyClass | LoyaltyObject): string {
  return createHash('sha256').update(toCanonicalJson(record)).digest('base64url');
}

/** Removes null fields, which only matter in a patch. */
export function withoutNulls(record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
}

/**
 * Renders the message of a notification. When sent again, it replaces itself by its id. It goes from the pass after a day,
 * when it may not be true any more.
 * @returns undefined for a notification that Google words itself: an update of the balance, unless the store wrote a text
 */
export function renderNotificationMessage(
  { kind, text, isOwn }: WrittenNotification,
  tag: number,
  content: PassContent,
  changedAt: Date,
): NotificationMessage | undefined {
  if (text === null || (kind !== 'unlocked' && !isOwn)) return undefined;
  const end = new Date(changedAt.getTime() + MESSAGE_LIFETIME_MS);
  return {
    id: `${kind}_${tag}`,
    header:
      kind === 'unlocked'
        ? getCustomerTranslations(content).t.googlePass.unlocked
        : content.card.name,
    body: text,
    displayInterval: { end: { date: end.toISOString() } },
  };
}

/** Renders the object of an erased or merged customer, without personal data. Objects cannot be deleted at Google. */
function renderVoidObject(ids: { id: string; classId: string }): LoyaltyObject {
  return {
    ...ids,
    state: 'INACTIVE',
    accountId: null,
    accountName: null,
    loyaltyPoints: null,
    secondaryLoyaltyPoints: null,
    barcode: null,
    heroImage: null,
    textModulesData: [],
    linksModuleData: null,
    validTimeInterval: null,
    merchantLocations: [],
    messages: [],
  };
}

/** Renders the second of the two values that fit on the front of a pass. */
function renderSecondaryPoints(
  { stampsToReward, memberName }: PassContent,
  t: Translations,
): Points | null {
  if (stampsToReward !== null)
    return { label: t.googlePass.toReward, balance: { int: stampsToReward } };
  return memberName === null
    ? null
    : { label: t.googlePass.member, balance: { string: memberName } };
}

function renderClassTexts({ card, offers, contact }: PassContent, t: Translations): TextModule[] {
  const texts = card.auxiliaryFields.map(({ key, label, value }) => ({
    id: key,
    header: label ?? card.name,
    body: value,
  }));
  if (card.headerText) texts.unshift({ id: 'header', header: card.name, body: card.headerText });
  if (offers.length > 0) {
    const { rewards, omittedCount } = limitRewards(offers);
    const lines = rewards.map(({ name, description, stampsRequired }) =>
      [t.wallet.reward({ name, count: stampsRequired }), description].filter(Boolean).join('\n'),
    );
    if (omittedCount > 0) lines.push(t.wallet.moreRewards({ count: omittedCount }));
    texts.push({ id: 'rewards', header: t.wallet.rewards, body: lines.join('\n') });
  }
  const { address, termsText } = contact;
  if (address !== null) texts.push({ id: 'address', header: t.contact.address, body: address });
  if (termsText !== null) texts.push({ id: 'terms', header: t.contact.terms, body: termsText });
  return texts;
}

/**
 * Puts the card's own texts on the front, where Google shows only the two values of every loyalty card unless a template
 * names more.
 */
function renderFront({ card }: PassContent): LoyaltyClass['classTemplateInfo'] {
  const ownRows = [
    card.headerText ? ['header'] : [],
    card.auxiliaryFields.map(({ key }) => key),
  ].map((ids) => ids.map((id) => `class.textModulesData['${id}']`));
  if (ownRows.every((row) => row.length === 0)) return null;
  const [header = [], auxiliary = []] = ownRows;
  const points = ['object.loyaltyPoints.balance', 'object.secondaryLoyaltyPoints.balance'];
  const rows = [header, points, auxiliary].flatMap((paths) => renderTemplateRow(paths) ?? []);
  return { cardTemplateOverride: { cardRowTemplateInfos: rows } };
}

function renderTemplateRow(paths: string[]): TemplateRow | undefined {
  const [startItem, endItem] = paths.map((fieldPath): TemplateItem => ({
    firstValue: { fields: [{ fieldPath }] },
  }));
  if (startItem === undefined) return undefined;
  return endItem === undefined
    ? { oneItem: { item: startItem } }
    : { twoItems: { startItem, endItem } };
}

/** Renders the links by which customers reach the store. */
function renderContactLinks({ contact }: PassContent, t: Translations): Links | null {
  const { website, phone, email } = contact;
  const uris = [
    ...(website === null ? [] : [{ id: 'website', uri: website, description: t.contact.website }]),
    ...(phone === null ? [] : [{ id: 'phone', uri: toPhoneLink(phone), description: phone }]),
    ...(email === null ? [] : [{ id: 'email', uri: `mailto:${email}`, description: email }]),
  ];
  return uris.length === 0 ? null : { uris };
}

/** Renders the available rewards, with their stamps where these are fewer than the class says. */
function renderAvailableTexts({ rewards, offers }: PassContent, t: Translations): TextModule[] {
  const offeredStamps = new Map(offers.map(({ id, stampsRequired }) => [id, stampsRequired]));
  const { rewards: available, omittedCount } = limitRewards(
    rewards.filter((reward) => reward.available),
  );
  const names = available.map(({ id, name, stampsRequired }) =>
    offeredStamps.get(id) === stampsRequired
      ? name
      : t.wallet.reward({ name, count: stampsRequired }),
  );
  if (omittedCount > 0) names.push(t.wallet.moreRewards({ count: omittedCount }));
  return names.length === 0
    ? []
    : [{ id: 'available', header: t.googlePass.ready, body: names.join('\n') }];
}

/**
 * Tells whether all customers see the same locations. With ten there may be more, and each customer gets the nearest.
 */
function areShared(locations: PassLocation[]): boolean {
  return locations.length < MAX_LOCATIONS;
}

/** Sorts the locations so that their order does not depend on the customer. */
function toSortedLocations(locations: PassLocation[]): Location[] {
  return locations
    .map(({ latitude, longitude }) => ({ latitude, longitude }))
    .sort((a, b) => a.latitude - b.latitude || a.longitude - b.longitude);
}

function renderImage(uri: string, value: string, language: string): Image {
  return { sourceUri: { uri }, contentDescription: { defaultValue: { language, value } } };
}
