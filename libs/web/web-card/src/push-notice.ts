import { formatCount, getTranslations, type Localization } from '#translations/translations.js';
import type { PassContent } from '#passes/pass-content.js';
import type { PassNotice } from '#passes/pass-notice.js';
import { summarize } from './card-view.js';

/** The notification that the service worker of a card shows. */
export type PushNotice = { title: string; body: string; url: string; lang: string };

/** Creates a notification in the language of the store. @param publicUrl without a trailing slash */
export function createPushNotice(
  content: PassContent,
  notice: PassNotice,
  publicUrl: string,
): PushNotice {
  const localization = getTranslations(content.locale);
  const body = [
    describeNotice(notice, localization),
    `${content.card.name}: ${summarize(content, localization)}`,
  ];
  return {
    title: content.storeName,
    body: body.filter((line) => line !== null).join('\n'),
    url: `${publicUrl}/passes/${content.uuid}`,
    lang: localization.locale,
  };
}

/** Describes a notice; null when stamps were removed, where the balance alone is enough. */
function describeNotice(notice: PassNotice, localization: Localization): string | null {
  const { card: t, stamps } = localization.t;
  switch (notice.kind) {
    case 'stamped':
      return notice.stamps > 0 ? formatCount(stamps.added, notice.stamps, localization) : null;
    case 'unlocked':
      return t.noticeUnlocked(notice.rewardName);
    case 'redeemed':
      return t.noticeRedeemed(notice.rewardName);
  }
}
