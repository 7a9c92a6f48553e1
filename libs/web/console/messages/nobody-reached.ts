import type { Reach, UnreachedReason } from '#outbound/messages/message-channel.js';
import type { Localization } from '#translations/translations.js';

/** Tells whether a reason is one of people who have agreed: then it is not true that nobody has. */
function isAfterConsent(reason: UnreachedReason): boolean {
  return reason === 'unconfirmed' || reason === 'bounced' || reason === 'country';
}

/** Says why nobody gets a message, in a sentence for each channel. @returns blank when somebody does */
export function explainNobody(
  { people, reached, reasons }: Reach,
  { t: { messagePages: t }, locale }: Localization,
): string {
  if (reached > 0) return '';
  const { nobody } = t.reach;
  if (people === 0) return nobody.noPeople;
  const missing = reasons.filter(({ reason }) => reason === 'not_set_up');
  const names = missing.map(({ channel }) => t.channels[channel]);
  const channels = new Intl.ListFormat(locale).format([...new Set(names)]);
  const whys = reasons.flatMap(({ channel, reason }) => {
    switch (reason) {
      case 'not_set_up':
        return [];
      case 'country':
        return [nobody.abroad];
      case 'unconfirmed':
      case 'bounced':
      case 'stopped':
        return [nobody[reason]];
      default:
        return reasons.some((other) => other.channel === channel && isAfterConsent(other.reason))
          ? []
          : [nobody.why[channel]];
    }
  });
  return [nobody.yet, names.length > 0 && nobody.notSetUp({ channels }), ...new Set(whys)]
    .filter(Boolean)
    .join(' ');
}

/** Tells whether nobody gets a message, and some for want of a consent. */
export function lacksConsent({ reached, reasons }: Reach): boolean {
  return reached === 0 && reasons.some(({ reason }) => reason === 'no_consent');
}
