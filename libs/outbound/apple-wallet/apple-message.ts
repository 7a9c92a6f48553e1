import { getLocalDay } from '#platform/kernel/zoned-time.js';
import { getCustomerTranslations, type CustomerLanguage } from '#translations/translations.js';
import type { PassJson } from './pass-json.js';

/** A message of the store. @property at ISO 8601 */
export type AppleMessage = { title: string; text: string; tag: number; at: string };

/** @property page the page of the card */
type MessagePlace = CustomerLanguage & { notificationTag: number; timeZone: string; page: string };

/**
 * Adds the last message of the store to the back of a pass. A phone shows it when the value changes, so it has the day as
 * well: the same greeting comes again next year. The latest change alone may notify.
 * @param notificationTag of the last notification about the balance
 */
export function addMessage(
  pass: PassJson,
  { title, text, tag, at }: AppleMessage,
  { notificationTag, timeZone, locale, addressForm, page }: MessagePlace,
): PassJson {
  if (pass.voided) return pass;
  const isLatest = tag > notificationTag;
  const message = {
    key: 'message',
    label: title,
    value: renderNotification(text, at, { locale, timeZone }),
    ...(isLatest && { changeMessage: '%@' }),
  };
  const backFields = isLatest
    ? pass.storeCard.backFields.map(({ changeMessage: _changeMessage, ...field }) => field)
    : pass.storeCard.backFields;
  const stop = {
    key: 'stop_messages',
    label: getCustomerTranslations({ locale, addressForm }).t.holderMessages.stop,
    value: `${page}/messages`,
  };
  return { ...pass, storeCard: { ...pass.storeCard, backFields: [message, ...backFields, stop] } };
}

/** Renders what an iPhone notifies of, below the name of the store. @param at ISO 8601 */
export function renderNotification(
  text: string,
  at: string,
  { locale, timeZone }: Pick<MessagePlace, 'locale' | 'timeZone'>,
): string {
  const day = new Date(`${getLocalDay(timeZone, Date.parse(at))}T12:00:00Z`);
  const date = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(day);
  return `${text}\n${date}`;
}
