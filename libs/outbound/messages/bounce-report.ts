/**
 * Reads what mail servers report of an e-mail: that it could not be delivered (RFC 3464), or that its recipient
 * complained (RFC 5965). All that is read was written by strangers.
 */

/** A part of a mail, decoded. */
export type MailPart = { type: string; text: string };

export type MailReport = {
  /** The id of the message, see `SmtpClient.send`. */
  messageId: string;
  /** The recipients for whom the message failed. */
  bounces: { address: string; status: string }[];
  /** Whether somebody complained. @property address null: the report does not say whose mailbox it was in */
  complaint: { address: string | null } | null;
};

type Fields = ReadonlyMap<string, string>;

/** The types of the parts that `parseReport` reads. */
const STATUS = /^message\/(global-)?delivery-status$/;
const FEEDBACK = 'message/feedback-report';
const RETURNED = /^(message\/(rfc822|global)|text\/rfc822-headers|message\/global-headers)$/;
/** As `SmtpClient.send` makes it. */
const MESSAGE_ID = /^<([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@[^\s<>@]+>$/i;
/** More recipients than an e-mail of ours has. */
const MAX_RECIPIENTS = 10;

/** Longer than any field that is read. */
const MAX_FIELD_LENGTH = 1_000;

/** Tells whether a part of a mail is needed for `parseReport`. */
export function isReportPart(type: string): boolean {
  return isReport(type) || RETURNED.test(type);
}

function isReport(type: string): boolean {
  return STATUS.test(type) || type === FEEDBACK;
}

/**
 * Parses a report about an e-mail that may be one of ours.
 * @returns undefined for any other mail
 */
export function parseReport(parts: MailPart[]): MailReport | undefined {
  if (!parts.some(({ type }) => isReport(type))) return undefined;
  const returned = parts.find(({ type }) => RETURNED.test(type));
  const [, messageId] = MESSAGE_ID.exec(findField(returned?.text ?? '', 'message-id')) ?? [];
  if (messageId === undefined) return undefined;
  const bounces = parts
    .filter(({ type }) => STATUS.test(type))
    .flatMap(({ text }) => parseGroups(text).flatMap(parseRecipient))
    .slice(0, MAX_RECIPIENTS);
  const feedback = parts.find(({ type }) => type === FEEDBACK);
  return { messageId: messageId.toLowerCase(), bounces, complaint: parseComplaint(feedback) };
}

/** Parses the fields about one recipient (RFC 3464, section 2.3). */
function parseRecipient(fields: Fields): MailReport['bounces'] {
  const [, address] =
    /^(?:rfc822|utf-8)\s*;\s*<?([^\s<>@]+@[^\s<>@]+)>?$/i.exec(
      fields.get('final-recipient') ?? '',
    ) ?? [];
  if (address === undefined || fields.get('action')?.toLowerCase() !== 'failed') return [];
  const status = findStatus(fields.get('status') ?? '');
  // Some servers say nothing but that it failed, and what the other server responded (section 2.3.6).
  const diagnostic = /^smtp\s*;(.*)$/is.exec(fields.get('diagnostic-code') ?? '')?.[1] ?? '';
  const isVague = status === undefined || status === '5.0.0';
  const code = isVague ? (findStatus(diagnostic) ?? status) : status;
  return code === undefined ? [] : [{ address, status: code }];
}

function findStatus(text: string): string | undefined {
  return /(?:^|[\s#(-])(5\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(text)?.[1];
}

function parseComplaint(part: MailPart | undefined): MailReport['complaint'] {
  const [fields] = parseGroups(part?.text ?? '');
  if (fields?.get('feedback-type')?.toLowerCase() !== 'abuse') return null;
  const [, address] =
    /^<?([^\s<>@]+@[^\s<>@]+)>?$/.exec(fields.get('original-rcpt-to') ?? '') ?? [];
  return { address: address ?? null };
}

/** Parses groups of fields, which blank lines separate. Of a field that comes twice, the first counts. */
function parseGroups(text: string): Fields[] {
  return text
    .replaceAll('\r\n', '\n')
    .split(/\n[ \t]*\n/)
    .map((group) => {
      const fields = new Map<string, string>();
      for (const line of group.replaceAll(/\n[ \t]+/g, ' ').split('\n')) {
        const [, name = '', value = ''] = /^([\w-]{1,76})[ \t]*:[ \t]*(.*)$/.exec(line) ?? [];
        const key = name.toLowerCase();
        if (key !== '' && !fields.has(key))
          fields.set(key, value.slice(0, MAX_FIELD_LENGTH).trim());
      }
      return fields;
    });
}

/** Finds a field at the head of a mail. */
function findField(text: string, name: string): string {
  return parseGroups(text.trimStart())[0]?.get(name) ?? '';
}
