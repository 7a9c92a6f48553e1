/**
 * The marks by which a report about an e-mail names it. Relays such as Amazon SES, Microsoft 365 and Gmail give an e-mail a
 * Message-ID of their own, so its id is also in a field of ours and, with a pattern in BOUNCE_ADDRESS, in its envelope sender.
 */

/** The field of ours, which relays leave alone. */
export const MESSAGE_ID_FIELD = 'X-Inkpad-Message';
/** Stands for the id in BOUNCE_ADDRESS. */
const PLACEHOLDER = '{id}';

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const BARE = new RegExp(`^<?(${UUID})>?$`, 'i');
/** As `renderMessageId` makes it. */
const MESSAGE_ID = new RegExp(`^<(${UUID})@[^\\s<>@]+>$`, 'i');
/** Forwarders put an address into one of their own (SRS, BATV), which has the former one at its end or its beginning. */
const ADDRESS = new RegExp(`(?<![0-9a-z])(${UUID})(?![0-9a-z])[^\\s<>@]*@[^\\s<>@]+`, 'i');

/** The fields of an e-mail, and of a report about it, that may name it. */
const MAIL_FIELDS: Readonly<Record<string, RegExp>> = {
  [MESSAGE_ID_FIELD.toLowerCase()]: BARE,
  'message-id': MESSAGE_ID,
  'x-microsoft-original-message-id': MESSAGE_ID,
  'x-google-original-message-id': MESSAGE_ID,
  'return-path': ADDRESS,
  'original-mail-from': ADDRESS,
};

/** The fields at the head of a report that say to which envelope sender it went. */
export const RECIPIENT_FIELDS = [
  'to',
  'delivered-to',
  'x-original-to',
  'x-envelope-to',
  'envelope-to',
  'x-forwarded-to',
];

/** Renders the Message-ID of an e-mail. */
export function renderMessageId(id: string, domain: string): string {
  return `<${id}@${domain}>`;
}

/** Renders the envelope sender of an e-mail. @param pattern as in BOUNCE_ADDRESS, with or without `{id}` */
export function renderBounceAddress(pattern: string, id: string): string {
  return pattern.replace(PLACEHOLDER, id);
}

/** Lists what may be the id of an e-mail in its head, or in what a report says about it. */
export function listMailIds(fields: ReadonlyMap<string, string>): string[] {
  return listIds(fields, Object.entries(MAIL_FIELDS));
}

/** Lists what may be the id of the e-mail in the head of a report about it. */
export function listRecipientIds(fields: ReadonlyMap<string, string>): string[] {
  return listIds(
    fields,
    RECIPIENT_FIELDS.map((name) => [name, ADDRESS]),
  );
}

function listIds(fields: ReadonlyMap<string, string>, patterns: [string, RegExp][]): string[] {
  return patterns
    .map(([name, pattern]) => pattern.exec(fields.get(name) ?? '')?.[1]?.toLowerCase())
    .filter((id) => id !== undefined);
}
