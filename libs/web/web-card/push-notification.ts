import { getCustomerTranslations } from '#translations/translations.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import type { WrittenNotification } from '#outbound/passes/pass-notification.js';
import { summarize } from './card-view.js';

/** The media type of a message that a browser can show itself. Others ignore it, as they cannot read what is encrypted. */
export const PUSH_NOTIFICATION_TYPE = 'application/notification+json';

/** Long enough for every phone, and short enough for one record of a message (RFC 8291, section 4). */
const MAX_TITLE_LENGTH = 100;
const MAX_TEXT_LENGTH = 400;
const MAX_BALANCE_LENGTH = 250;

/**
 * A declarative push message (Push API, "Declarative push message"): a browser that knows it shows the notification
 * itself, without running the service worker. Any other gives it to the service worker, which shows the same.
 */
export type PushNotification = {
  /** Marks the message as a declarative one: the number of the RFC of Web Push. */
  web_push: 8030;
  notification: {
    title: string;
    body: string;
    lang: string;
    dir: 'auto';
    /** Where a tap on the notification leads. */
    navigate: string;
    icon: string;
    /** A notification replaces an older one of the same tag. */
    tag: string;
    renotify: true;
  };
};

/**
 * Creates a notification in the language of the store. That of a change replaces the one before, a message of the store stays.
 * @param publicUrl without a trailing slash
 */
export function createPushNotification(
  content: PassContent,
  { text, message }: Pick<WrittenNotification, 'text'> & { message?: number },
  publicUrl: string,
): PushNotification {
  const localization = getCustomerTranslations(content);
  const page = `${publicUrl}/passes/${content.uuid}`;
  const balance = `${content.card.name}: ${summarize(content, localization)}`;
  const lines = [
    ...(text === null ? [] : [shorten(text, MAX_TEXT_LENGTH)]),
    shorten(balance, MAX_BALANCE_LENGTH),
  ];
  return {
    web_push: 8030,
    notification: {
      title: shorten(content.storeName, MAX_TITLE_LENGTH),
      body: lines.join('\n'),
      lang: localization.locale,
      dir: 'auto',
      navigate: page,
      icon: `${page}/icon.svg`,
      tag: new URL(page).pathname + (message === undefined ? '' : `#message-${message}`),
      renotify: true,
    },
  };
}

function shorten(text: string, max: number): string {
  const characters = [...text];
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : text;
}
