import { createHash } from 'node:crypto';
import { zonedTime } from '#kernel/zoned-time.js';
import { canonicalJson } from '#event-store/canonical-json.js';
import { isExpired } from '#cards/card.js';
import type { PassContent, PassLocation } from '#passes/pass-content.js';
import { wordsOf, type Words } from './words.js';

/** Of one class and of one object. */
export const MOST_LOCATIONS = 10;
const CALLBACK_PATH = '/wallet/google/callback';

/** Where passes belong: part of every id, and what their links lead to. */
export type GooglePlace = { issuerId: string; idSuffix: string; publicUrl: string };

/**
 * As in Google's REST reference, "REST Resource: loyaltyclass". `merchantLocations` are what a phone shows the pass at;
 * the deprecated `locations` trigger nothing.
 */
export type LoyaltyClass = {
  id: string;
  issuerName: string;
  programName: string;
  programLogo: Image;
  /** Sent with every update too: Google refuses it otherwise. */
  reviewStatus: 'UNDER_REVIEW';
  hexBackgroundColor: string;
  accountNameLabel: string;
  accountIdLabel: string;
  textModulesData: TextModule[];
  merchantLocations: Place[];
  multipleDevicesAndHoldersAllowedStatus: 'ONE_USER_ALL_DEVICES';
  callbackOptions: { url: string };
};

/**
 * "REST Resource: loyaltyobject". A patch merges fields, so that what is to be taken away stands here as null.
 */
export type LoyaltyObject = {
  id: string;
  classId: string;
  state: 'ACTIVE' | 'EXPIRED' | 'INACTIVE';
  accountId: string | null;
  accountName: string | null;
  loyaltyPoints: Points | null;
  secondaryLoyaltyPoints: Points | null;
  barcode: { type: 'QR_CODE'; value: string; alternateText: string } | null;
  heroImage: Image | null;
  textModulesData: TextModule[];
  linksModuleData: { uris: { id: string; uri: string; description: string }[] } | null;
  validTimeInterval: { end: { date: string } } | null;
  merchantLocations: Place[];
  /** Only where there must be none left. */
  messages?: [];
};

type Image = {
  sourceUri: { uri: string };
  contentDescription: { defaultValue: { language: string; value: string } };
};
type TextModule = { id: string; header: string; body: string };
type Points = { label: string; balance: { string: string } | { int: number } };
type Place = { latitude: number; longitude: number };

export function classId(cardId: number, { issuerId, idSuffix }: GooglePlace): string {
  return `${issuerId}.card_${cardId}_${idSuffix}`;
}

export function objectId(uuid: string, { issuerId, idSuffix }: GooglePlace): string {
  return `${issuerId}.cc_${uuid}_${idSuffix}`;
}

/** @returns undefined for what is no object of this service's */
export function uuidOf(id: string, { issuerId, idSuffix }: GooglePlace): string | undefined {
  const [begin, end] = [`${issuerId}.cc_`, `_${idSuffix}`];
  if (!id.startsWith(begin) || !id.endsWith(end)) return undefined;
  return id.slice(begin.length, -end.length);
}

/**
 * What all customers of a card see alike, so that a change of it is one request.
 * @param content of any customer card: nothing in the result depends on which
 * @param logo its public URL
 */
export function loyaltyClass(content: PassContent, place: GooglePlace, logo: string): LoyaltyClass {
  const { card, storeName, locale } = content;
  const words = wordsOf(locale);
  return {
    id: classId(content.cardId, place),
    issuerName: storeName,
    programName: card.name,
    programLogo: image(logo, storeName, locale),
    reviewStatus: 'UNDER_REVIEW',
    hexBackgroundColor: card.cardColor,
    accountNameLabel: words.member,
    accountIdLabel: words.code,
    textModulesData: classTexts(content, words),
    merchantLocations: areShared(content.locations) ? placesOf(content.locations) : [],
    multipleDevicesAndHoldersAllowedStatus: 'ONE_USER_ALL_DEVICES',
    callbackOptions: { url: `${place.publicUrl}${CALLBACK_PATH}` },
  };
}

/** @param hero public URL of the image with the stamps */
export function loyaltyObject(
  content: PassContent,
  place: GooglePlace,
  hero: string,
  now: Date,
): LoyaltyObject {
  const ids = { id: objectId(content.uuid, place), classId: classId(content.cardId, place) };
  if (content.state === 'void') return voidObject(ids);
  const { code, locale, stampsCount, card, memberName, expiresAt } = content;
  const words = wordsOf(locale);
  const balance = `${stampsCount} / ${card.stampsRequired}`;
  return {
    ...ids,
    state: isExpired(content, now) ? 'EXPIRED' : 'ACTIVE',
    accountId: code,
    accountName: memberName,
    loyaltyPoints: { label: words.stamps, balance: { string: balance } },
    secondaryLoyaltyPoints: secondPoints(content, words),
    barcode: { type: 'QR_CODE', value: code, alternateText: code },
    heroImage: image(hero, `${words.stamps}: ${balance}`, locale),
    textModulesData: availableTexts(content, words),
    linksModuleData: {
      uris: [
        { id: 'page', uri: `${place.publicUrl}/passes/${content.uuid}`, description: words.page },
      ],
    },
    validTimeInterval:
      expiresAt === null ? null : { end: { date: zonedTime(expiresAt, content.timeZone) } },
    merchantLocations: areShared(content.locations) ? [] : placesOf(content.locations),
  };
}

/** Equal for what Google would show alike. */
export function googleHash(record: LoyaltyClass | LoyaltyObject): string {
  return createHash('sha256').update(canonicalJson(record)).digest('base64url');
}

/** Without the fields that only say what is to be taken away. */
export function withoutNulls(record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
}

/** The message that tells of an unlocked reward. Sent again under the same id, it takes its own place. */
export function unlockedMessage(rewardName: string, tag: number, locale: string) {
  const { header, body } = wordsOf(locale).unlocked;
  return { id: `unlocked_${tag}`, header, body: body(rewardName) };
}

/** Erased or merged: nothing personal stays with Google. There is no way to delete an object. */
function voidObject(ids: { id: string; classId: string }): LoyaltyObject {
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

/** The face of a pass has room for two values. */
function secondPoints({ stampsToReward, memberName }: PassContent, words: Words): Points | null {
  if (stampsToReward !== null) return { label: words.toReward, balance: { int: stampsToReward } };
  return memberName === null ? null : { label: words.member, balance: { string: memberName } };
}

function classTexts({ card, offers }: PassContent, words: Words): TextModule[] {
  const texts = card.auxiliaryFields.map(({ key, label, value }) => ({
    id: key,
    header: label ?? card.name,
    body: value,
  }));
  if (card.headerText) texts.unshift({ id: 'header', header: card.name, body: card.headerText });
  if (offers.length > 0) {
    const lines = offers.map(({ name, description, stampsRequired }) =>
      [words.reward(name, stampsRequired), description].filter(Boolean).join('\n'),
    );
    texts.push({ id: 'rewards', header: words.rewards, body: lines.join('\n') });
  }
  return texts;
}

/** With the stamps that a reward takes where they are fewer than the class says. */
function availableTexts({ rewards, offers }: PassContent, words: Words): TextModule[] {
  const offered = new Map(offers.map(({ id, stampsRequired }) => [id, stampsRequired]));
  const names = rewards
    .filter(({ available }) => available)
    .map(({ id, name, stampsRequired }) =>
      offered.get(id) === stampsRequired ? name : words.reward(name, stampsRequired),
    );
  return names.length === 0
    ? []
    : [{ id: 'available', header: words.ready, body: names.join('\n') }];
}

/** With ten there may be more, of which each customer has their own nearest; fewer are all there are. */
function areShared(locations: PassLocation[]): boolean {
  return locations.length < MOST_LOCATIONS;
}

/** In an order that does not depend on the customer. */
function placesOf(locations: PassLocation[]): Place[] {
  return locations
    .map(({ latitude, longitude }) => ({ latitude, longitude }))
    .sort((a, b) => a.latitude - b.latitude || a.longitude - b.longitude);
}

function image(uri: string, value: string, language: string): Image {
  return { sourceUri: { uri }, contentDescription: { defaultValue: { language, value } } };
}
