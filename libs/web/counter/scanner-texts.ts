import type { Localization } from '#translations/translations.js';

/** The texts of the camera and of what the script says itself, which need no number of it. */
const SCANNER = [
  'aim',
  'starting',
  'cameraDenied',
  'noCamera',
  'cameraBusy',
  'cameraLost',
  'cameraFailed',
  'noCard',
  'codeWrong',
  'unreachable',
  'moment',
  'next',
] as const;
const WAITING = [
  'offline',
  'offlineWhy',
  'busy',
  'unavailable',
  'unattended',
  'unattendedWhy',
  'confirm',
  'discard',
  'saved',
  'savedWhy',
  'savedReward',
  'notSaved',
  'noResponse',
  'refused',
  'dismiss',
  'signedOut',
  'signIn',
  'signInLink',
] as const;

/**
 * Creates the texts that the script of the scanner shows. `{what}`, `{ago}` and `{n}` stand for what it puts there itself;
 * the texts with `{n}` are by the plural category of the language.
 */
export function createScannerTexts({ t, locale }: Localization) {
  const { scanner, waiting, outcome } = t.counter;
  return {
    ...pick(scanner, SCANNER),
    ...pick(waiting, WAITING),
    waiting: waiting.count({ what: '{what}' }),
    others: waiting.others({ what: '{what}' }),
    unattendedCount: waiting.unattendedCount({ what: '{what}' }),
    sent: waiting.sent({ what: '{what}' }),
    again: waiting.again({ ago: '{ago}' }),
    stamping: scanner.stamping({ code: '{code}' }),
    stamps: toPlurals(t.stamps.count, locale),
    rewards: toPlurals(t.cardPages.rewardCount, locale),
    addAnother: outcome.addAnother,
    no: outcome.no,
  };
}

function pick<T extends Record<string, unknown>, K extends keyof T>(
  texts: T,
  names: readonly K[],
): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, texts[name]])) as Pick<T, K>;
}

/** Renders a message for one number of each plural category that small numbers have. */
function toPlurals(
  message: (fields: { count: number }) => string,
  locale: string,
): Record<string, string> {
  const rules = new Intl.PluralRules(locale);
  return Object.fromEntries(
    [2, 1].map((count) => [rules.select(count), message({ count }).replace(String(count), '{n}')]),
  );
}
