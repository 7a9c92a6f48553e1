/** Longer than a change takes from its timestamp until other transactions can read it. */
const VISIBLE_AFTER_MS = 60_000;
const MAX_LINES = 20;
const MAX_LINE_LENGTH = 500;
const MAX_IDENTIFIERS = 5;
/** Serial numbers have 36 characters; identifiers of devices have 32 and more. */
const IDENTIFIER = /(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{16,64}(?![A-Za-z0-9_-])/g;

type PassVersion = { changedAt: Date };

/**
 * Returns the Last-Modified of a pass in milliseconds, rounded down to whole seconds as in HTTP. A change of the last
 * minute is dated one second earlier: if the pass changes again within the same second, the phone's next request gets
 * the pass and never a 304.
 */
export function getLastModifiedMs({ changedAt }: PassVersion, now: Date): number {
  const second = toWholeSecondMs(changedAt);
  return now.getTime() - changedAt.getTime() < VISIBLE_AFTER_MS ? second - 1000 : second;
}

/**
 * Tells whether a phone has the current pass. A date after the pass's does not count: it was sent before a backup was
 * restored.
 * @param since the If-Modified-Since of a phone
 */
export function isUnchanged({ changedAt }: PassVersion, since: string | undefined): boolean {
  return since !== undefined && Date.parse(since) === toWholeSecondMs(changedAt);
}

/** Parses the push token. @returns undefined unless it is hex, so that it can be part of a path */
export function parsePushToken(body: unknown): string | undefined {
  const { pushToken } = (body ?? {}) as { pushToken?: unknown };
  return typeof pushToken === 'string' && /^[0-9a-f]{16,200}$/i.test(pushToken)
    ? pushToken
    : undefined;
}

/** A line that a phone reports, and what may be serial numbers or identifiers of devices in it. */
export type PhoneLogLine = { text: string; identifiers: string[] };

/**
 * Parses the log of a phone. Removes line breaks, serial numbers, which give access to passes, and what looks like an
 * e-mail address or a phone number: anyone with a pass can send any text.
 */
export function parsePhoneLog(body: unknown): PhoneLogLine[] {
  const { logs } = (body ?? {}) as { logs?: unknown };
  if (!Array.isArray(logs)) return [];
  return logs
    .filter((line) => typeof line === 'string')
    .slice(0, MAX_LINES)
    .map((line) => ({
      identifiers: (line.match(IDENTIFIER) ?? []).slice(0, MAX_IDENTIFIERS),
      text: line
        // eslint-disable-next-line no-control-regex
        .replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
        .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/gi, '…')
        .replaceAll(/[A-Za-z0-9_-]{32,}/g, '…')
        .replaceAll(/(?<![^\s<>"',;:])[^\s<>"',;:@]+@[^\s<>"',;:]+/g, '…')
        .replaceAll(/\+\d[\d ()/.-]{6,}\d|\d{7,}/g, '…')
        .slice(0, MAX_LINE_LENGTH),
    }));
}

function toWholeSecondMs(time: Date): number {
  return Math.floor(time.getTime() / 1000) * 1000;
}
