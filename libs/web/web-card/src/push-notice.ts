import type { PassContent } from '#passes/pass-content.js';
import type { PassNotice } from '#passes/pass-notice.js';
import { counted, summary } from './card-page.js';
import { wordsOf, type Told } from './words.js';

/** What the service worker of a card shows. */
export type PushNotice = { title: string; body: string; url: string; lang: string };

/** @param publicUrl without a trailing slash */
export function pushNotice(
  content: PassContent,
  notice: PassNotice,
  publicUrl: string,
): PushNotice {
  const told = wordsOf(content.locale);
  const body = [sentence(notice, told), `${content.card.name}: ${summary(content, told)}`];
  return {
    title: content.storeName,
    body: body.filter((line) => line !== null).join('\n'),
    url: `${publicUrl}/passes/${content.uuid}`,
    lang: told.locale,
  };
}

/** Null where the balance says it all: stamps were taken off. */
function sentence(notice: PassNotice, told: Told): string | null {
  const { words } = told;
  switch (notice.kind) {
    case 'stamped':
      return notice.stamps > 0 ? counted(words.noticeStamped, notice.stamps, told) : null;
    case 'unlocked':
      return words.noticeUnlocked(notice.rewardName);
    case 'redeemed':
      return words.noticeRedeemed(notice.rewardName);
  }
}
