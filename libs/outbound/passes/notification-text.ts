import { getCustomerTranslations, type Localization } from '#translations/translations.js';
import type { CardTexts } from '#loyalty/cards/card.events.js';
import { fillMessage, hasNumber, type Placeholder } from '#loyalty/cards/card-texts.js';
import type { PassContent } from './pass-content.js';
import type { NotificationText, PassNotification } from './pass-notification.js';

/** More of a name than this does not fit into a notification. */
const MAX_NAME_LENGTH = 80;

const OWN_MESSAGES = {
  stamped: 'stampMessage',
  unlocked: 'rewardMessage',
  redeemed: 'redemptionMessage',
} as const satisfies Record<PassNotification['kind'], keyof CardTexts>;

/** Writes what the holder of a card is notified of: in the store's own words, or else what matters to the holder. */
export function writeNotification(
  notification: PassNotification,
  content: PassContent,
): NotificationText {
  if (notification.kind === 'stamped' && notification.stamps <= 0) {
    return { text: null, hasCount: false, isOwn: false };
  }
  const localization = getCustomerTranslations(content);
  const own = content.messages[OWN_MESSAGES[notification.kind]];
  const text =
    own === null ? undefined : fillMessage(own, listValues(notification, content, localization));
  if (own !== null && text !== undefined) return { text, hasCount: hasNumber(own), isOwn: true };
  return { ...writeDefault(notification, content, localization), isOwn: false };
}

function listValues(
  notification: PassNotification,
  content: PassContent,
  { locale }: Localization,
): Partial<Record<Placeholder, string>> {
  const { stampsCount, card, storeName } = content;
  const numbers = new Intl.NumberFormat(locale);
  const names = { card: shorten(card.name), store: shorten(storeName) };
  const stamps = numbers.format(stampsCount);
  if (notification.kind !== 'stamped')
    return { ...names, stamps, reward: shorten(notification.rewardName) };
  const { missing, reward } = findNext(content);
  return {
    ...names,
    stamps,
    ...(missing !== null && { missing: numbers.format(missing) }),
    ...(reward !== null && { reward: shorten(reward) }),
  };
}

function writeDefault(
  notification: PassNotification,
  content: PassContent,
  localization: Localization,
): Pick<NotificationText, 'text' | 'hasCount'> {
  const { notification: t, stamps } = localization.t;
  if (notification.kind !== 'stamped') {
    return {
      text: t[notification.kind]({ reward: shorten(notification.rewardName) }),
      hasCount: false,
    };
  }
  const { missing, reward } = findNext(content);
  if (missing === null) {
    return { text: `${stamps.added({ count: notification.stamps })}.`, hasCount: false };
  }
  const text =
    reward === null
      ? t.toFullCard({ count: missing })
      : t.toReward({ count: missing, reward: shorten(reward) });
  return { text, hasCount: true };
}

/** Finds the stamps to the cheapest reward above the balance, or else to a full card. */
function findNext({ rewards, stampsCount, card }: PassContent): {
  missing: number | null;
  reward: string | null;
} {
  const next = rewards.find(({ stampsRequired }) => stampsRequired > stampsCount);
  if (next) return { missing: next.stampsRequired - stampsCount, reward: next.name };
  const missing = card.stampsRequired - stampsCount;
  return { missing: missing > 0 ? missing : null, reward: null };
}

function shorten(name: string): string {
  const characters = [...name];
  return characters.length > MAX_NAME_LENGTH
    ? `${characters.slice(0, MAX_NAME_LENGTH - 1).join('')}…`
    : name;
}
