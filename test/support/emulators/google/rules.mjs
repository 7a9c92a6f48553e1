/** Google's rules for classes and objects. Each function returns an error, or undefined. */

const DAY_MS = 24 * 3600 * 1000;
/** Of each kind, for one object in 24 hours. */
export const MAX_NOTIFICATIONS = 3;
export const MOST_KEPT_MESSAGES = 10;
export const LONGEST_JWT = 1800;
const MOST_LOCATIONS = 10;
const MOST_ROWS = 3;
const STATES = new Set(['ACTIVE', 'COMPLETED', 'EXPIRED', 'INACTIVE']);
/** The values of enumerations that are not legacy aliases in camel case. */
const VALUES = {
  'barcode.type': /^(AZTEC|CODE_39|CODE_128|CODABAR|DATA_MATRIX|EAN_8|EAN_13|ITF_14|PDF_417|QR_CODE|UPC_A|TEXT_ONLY)$/, // prettier-ignore
  multipleDevicesAndHoldersAllowedStatus:
    /^(MULTIPLE_HOLDERS|ONE_USER_ALL_DEVICES|ONE_USER_ONE_DEVICE)$/,
  notifyPreference: /^NOTIFY_ON_UPDATE$/,
};
/**
 * Fields that Google accepts and ignores, with their replacements, as in "REST Resource: loyaltyclass" and "REST
 * Resource: loyaltyobject".
 */
const DEPRECATED = {
  locations: 'use merchantLocations',
  infoModuleData: 'use textModulesData',
  allowMultipleUsersPerObject: 'use multipleDevicesAndHoldersAllowedStatus',
  wordMark: 'it is not shown',
  version: 'it has no meaning',
  kind: 'it has no meaning',
  linkedOfferIds: 'use auto linked passes',
  'callbackOptions.updateRequestUrl': 'use url',
  'programLogo.sourceUri.description': 'use contentDescription',
  'heroImage.sourceUri.description': 'use contentDescription',
};
/** A change of one of these notifies the holder with NOTIFY_ON_UPDATE. */
const NOTIFYING_FIELDS = ['loyaltyPoints', 'secondaryLoyaltyPoints'];

const CLASS_FIELDS = new Set([
  'id',
  'issuerName',
  'programName',
  'programLogo',
  'reviewStatus',
  'hexBackgroundColor',
  'heroImage',
  'merchantLocations',
  'accountNameLabel',
  'accountIdLabel',
  'countryCode',
  'homepageUri',
  'textModulesData',
  'linksModuleData',
  'imageModulesData',
  'classTemplateInfo',
  'callbackOptions',
  'multipleDevicesAndHoldersAllowedStatus',
  'securityAnimation',
  'messages',
  'localizedIssuerName',
  'localizedProgramName',
  'rewardsTier',
  'rewardsTierLabel',
]);
const OBJECT_FIELDS = new Set([
  'id',
  'classId',
  'state',
  'accountId',
  'accountName',
  'loyaltyPoints',
  'secondaryLoyaltyPoints',
  'barcode',
  'heroImage',
  'textModulesData',
  'linksModuleData',
  'imageModulesData',
  'validTimeInterval',
  'merchantLocations',
  'notifyPreference',
  'groupingInfo',
  'passConstraints',
  'saveRestrictions',
  'messages',
]);

/** @param {string} issuerId @param {unknown} id */
export function findIdError(issuerId, id) {
  const [, issuer] = /^(\d+)\.[A-Za-z0-9._-]+$/.exec(String(id)) ?? [];
  if (issuer === undefined)
    return { status: 400, reason: 'invalidId', message: `Invalid id: ${id}` };
  if (issuer !== issuerId) {
    return {
      status: 403,
      reason: 'permissionDenied',
      message: `Not an issuer of yours: ${issuer}`,
    };
  }
  return undefined;
}

/** @param {'loyaltyClass' | 'loyaltyObject'} kind @param {Record<string, any>} fields */
export function findFieldsError(kind, fields) {
  const knownFields = kind === 'loyaltyClass' ? CLASS_FIELDS : OBJECT_FIELDS;
  for (const [path, instead] of Object.entries(DEPRECATED)) {
    if (valueAt(fields, path) !== undefined) return invalid(`${path} is deprecated: ${instead}`);
  }
  for (const [path, values] of Object.entries(VALUES)) {
    const value = valueAt(fields, path);
    if (value !== undefined && value !== null && !values.test(value)) {
      return invalid(`${path}: invalid value ${value}`);
    }
  }
  const unknown = Object.keys(fields).find((name) => !knownFields.has(name));
  if (unknown !== undefined) {
    return invalid(`Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`);
  }
  return undefined;
}

/** @param {Record<string, any>} loyaltyClass as it would be afterwards @param {boolean} allowHttp */
export function findClassError(loyaltyClass, allowHttp) {
  for (const name of ['issuerName', 'programName']) {
    if (!isText(loyaltyClass[name])) return invalid(`${name} is required`);
  }
  if (!isText(loyaltyClass.programLogo?.sourceUri?.uri)) return invalid('programLogo is required');
  if (!['UNDER_REVIEW', 'DRAFT', 'APPROVED'].includes(loyaltyClass.reviewStatus)) {
    return invalid('reviewStatus is required');
  }
  const color = loyaltyClass.hexBackgroundColor;
  if (color !== undefined && !/^#[0-9a-fA-F]{6}$/.test(color)) return invalid(`color ${color}`);
  const callback = loyaltyClass.callbackOptions?.url;
  if (callback !== undefined && !isFetchable(callback, allowHttp)) {
    return invalid(`callbackOptions.url must be https: ${callback}`);
  }
  return findTemplateError(loyaltyClass) ?? findPartsError(loyaltyClass, allowHttp);
}

/**
 * As in "CardTemplateOverride": at most three rows of one kind each, whose fields exist.
 * @param {Record<string, any>} loyaltyClass
 */
function findTemplateError({ classTemplateInfo, textModulesData = [] }) {
  const rows = classTemplateInfo?.cardTemplateOverride?.cardRowTemplateInfos ?? [];
  if (rows.length > MOST_ROWS) return invalid(`more than ${MOST_ROWS} rows of the card`);
  for (const row of rows) {
    const [kind, ...others] = Object.keys(row);
    if (others.length > 0 || !['oneItem', 'twoItems', 'threeItems'].includes(String(kind))) {
      return invalid(`a row of the card is one of oneItem, twoItems and threeItems`);
    }
    for (const item of Object.values(row[String(kind)])) {
      for (const { fieldPath } of item?.firstValue?.fields ?? [{}]) {
        const [, id] = /^class\.textModulesData\['(.+)'\]$/.exec(fieldPath) ?? [];
        const isKnown =
          id === undefined
            ? /^object\.(loyaltyPoints|secondaryLoyaltyPoints)\.balance$/.test(fieldPath)
            : textModulesData.some((/** @type {any} */ one) => one.id === id);
        if (!isKnown) return invalid(`the card has no field ${fieldPath}`);
      }
    }
  }
  return undefined;
}

/**
 * @param {Record<string, any>} loyaltyObject as it would be afterwards
 * @param {Map<string, any>} classes
 * @param {boolean} allowHttp
 */
export function findObjectError(loyaltyObject, classes, allowHttp) {
  const ofClass = classes.get(loyaltyObject.classId);
  if (!ofClass) return invalid(`Class ${loyaltyObject.classId} not found`, 'classNotFound');
  if (ofClass.reviewStatus !== 'APPROVED')
    return invalid(`Class ${loyaltyObject.classId} is a draft`);
  if (!STATES.has(loyaltyObject.state)) return invalid('state is required');
  const end = loyaltyObject.validTimeInterval?.end?.date;
  if (end !== undefined && !/T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(end)) {
    return invalid(`validTimeInterval.end.date needs an offset: ${end}`);
  }
  return findPartsError(loyaltyObject, allowHttp);
}

/** @param {Record<string, any>} parts @param {boolean} allowHttp */
function findPartsError(parts, allowHttp) {
  for (const name of ['programLogo', 'heroImage']) {
    const uri = parts[name]?.sourceUri?.uri;
    if (uri !== undefined && !isFetchable(uri, allowHttp)) {
      return invalid(`The image ${uri} cannot be fetched: it must be public and https`);
    }
  }
  const locations = parts.merchantLocations ?? [];
  if (locations.length > MOST_LOCATIONS) return invalid(`more than ${MOST_LOCATIONS} locations`);
  if (locations.some((/** @type {any} */ one) => !isDegrees(one))) {
    return invalid('bad merchantLocations');
  }
  if ((parts.messages ?? []).length > MOST_KEPT_MESSAGES) return invalid('too many messages');
  const ids = (parts.textModulesData ?? []).map((/** @type {any} */ one) => one.id);
  if (new Set(ids).size !== ids.length) return invalid('textModulesData: ids must be unique');
  return undefined;
}

/** @param {unknown} uri @param {boolean} allowHttp */
function isFetchable(uri, allowHttp) {
  if (typeof uri !== 'string' || !URL.canParse(uri)) return false;
  const { protocol, hostname } = new URL(uri);
  if (allowHttp && protocol === 'http:') return true;
  return protocol === 'https:' && hostname !== 'localhost' && !/^(127|10)\./.test(hostname);
}

/** @param {{ latitude?: unknown, longitude?: unknown }} place */
function isDegrees({ latitude, longitude }) {
  return Math.abs(Number(latitude)) <= 90 && Math.abs(Number(longitude)) <= 180;
}

/** @param {any} record @param {string} path */
function valueAt(record, path) {
  return path.split('.').reduce((value, name) => value?.[name], record);
}

/** @param {unknown} text */
function isText(text) {
  return typeof text === 'string' && text !== '';
}

/** @param {string} message */
function invalid(message, reason = 'invalid') {
  return { status: 400, reason, message };
}

/** Merges top-level fields; null removes one. @param {any} before @param {any} change */
export function mergeFields(before, change) {
  const after = { ...before, ...change };
  for (const [name, value] of Object.entries(after)) if (value === null) delete after[name];
  return after;
}

/** @param {any} before @param {any} after */
export function shouldNotify(before, after) {
  return NOTIFYING_FIELDS.some(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
}

/** @param {{ kind: string, objectId: string, at: number }[]} notifications */
export function isOverQuota(notifications, kind, objectId, now) {
  const recent = notifications.filter(
    (one) => one.kind === kind && one.objectId === objectId && one.at > now - DAY_MS,
  );
  return recent.length >= MAX_NOTIFICATIONS;
}
