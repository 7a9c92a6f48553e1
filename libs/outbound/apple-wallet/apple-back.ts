import { renderZonedTime } from '#platform/kernel/zoned-time.js';
import type { Localization, Translations } from '#translations/translations.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { limitRewards } from '#outbound/passes/limited-rewards.js';
import type { PassField } from './pass-json.js';

/** Renders the back of a pass, except the news and what the front had no room for. */
export function renderBackFields(
  content: PassContent,
  publicUrl: string,
  { t }: Localization,
): PassField[] {
  const { expiresAt, timeZone, locations, state } = content;
  const { rewards, omittedCount } = limitRewards(content.rewards);
  const rewardLines = rewards.map(({ name, description, stampsRequired, available }) => {
    const line = t.wallet.reward({ name, count: stampsRequired });
    return [available ? `${line} (${t.applePass.available})` : line, description]
      .filter(Boolean)
      .join('\n');
  });
  if (omittedCount > 0) {
    rewardLines.push(t.wallet.moreRewards({ count: omittedCount }));
  }
  const page = `${publicUrl}/passes/${content.uuid}`;
  const shops = [...new Set(locations.map(({ name }) => name))];
  return [
    ...(state === 'void'
      ? []
      : [
          {
            key: 'page',
            label: t.googlePass.page,
            value: page,
            attributedValue: `<a href="${page}">${t.applePass.openPage}</a>`,
          },
        ]),
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
