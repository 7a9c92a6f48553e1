/**
 * Reads what mail servers report of an e-mail: that it could not be delivered (RFC 3464), or that its recipient
 * complained (RFC 5965). All that is read was written by strangers.
 */

import { findMailbox, isEmailAddress } from '#platform/kernel/email-address.js';
import { listMailIds, listRecipientIds } from './message-ids.js';

/** A part of a mail, decoded. */
export type MailPart = { type: string; text: string };

/** What is read of a mail. @property head the fields that say to whom it went */
export type ReceivedMail = { head: string; parts: MailPart[] };

export type MailReport = {
  /** What may be the id of the message, the surest first: relays write ids of their own that look like one of ours. */
  messageIds: string[];
  /** The recipients for whom the message failed. */
  bounces: { address: string; status: string }[];
  /** Whether somebody complained. @property address null: the report does not say, or hides, whose mailbox it was in */
  complaint: { address: string | null } | null;
};

type Fields = ReadonlyMap<string, string>;

/** The types of the parts that `parseReport` reads. */
const STATUS = /^message\/(global-)?delivery-status$/;
const FEEDBACK = 'message/feedback-report';
const RETURNED = /^(message\/(rfc822|global)|text\/rfc822-headers|message\/global-headers)$/;
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
export function parseReport({ head, parts }: ReceivedMail): MailReport | undefined {
  if (!parts.some(({ type }) => isReport(type))) return undefined;
  const returned = parts.filter(({ type }) => RETURNED.test(type)).map(({ text }) => text);
  const feedback = parts.find(({ type }) => type === FEEDBACK);
  // The head of the e-mail itself says best which one it is.
  const messageIds = [
    ...[...returned, feedback?.text ?? ''].flatMap((text) => listMailIds(parseHead(text))),
    ...listRecipientIds(parseHead(head)),
  ];
  if (messageIds.length === 0) return undefined;
  const bounces = parts
    .filter(({ type }) => STATUS.test(type))
    .flatMap(({ text }) => parseGroups(text).flatMap(parseRecipient))
    .slice(0, MAX_RECIPIENTS);
  return { messageIds: [...new Set(messageIds)], bounces, complaint: parseComplaint(feedback) };
}

/** Parses the fields about one recipient (RFC 3464, section 2.3). */
function parseRecipient(fields: Fields): MailReport['bounces'] {
  const address = parseAddress(fields.get('final-recipient'));
  if (address === undefined || parseWord(fields.get('action')) !== 'failed') return [];
  const status = findStatus(fields.get('status') ?? '');
  // Some servers say nothing but that it failed, and what the other server responded (section 2.3.6).
  const [, type = 'smtp', diagnostic = ''] =
    /^(?:([\w-]+)\s*;)?(.*)$/s.exec(fields.get('diagnostic-code') ?? '') ?? [];
  const isVague = status === undefined || status === '5.0.0';
  const isSmtp = type.toLowerCase() === 'smtp';
  const code = isVague && isSmtp ? (findStatus(diagnostic) ?? status) : status;
  return code === undefined ? [] : [{ address, status: code }];
}

function findStatus(text: string): string | undefined {
  return /(?:^|[\s#(-])(5\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(text)?.[1];
}

function parseComplaint(part: MailPart | undefined): MailReport['complaint'] {
  const [fields] = parseGroups(part?.text ?? '');
  if (parseWord(fields?.get('feedback-type')) !== 'abuse') return null;
  return { address: parseAddress(fields?.get('original-rcpt-to')) ?? null };
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

/** Parses the head of a mail. */
function parseHead(text: string): Fields {
  return parseGroups(text.trimStart())[0] ?? new Map<string, string>();
}

/** Parses an address with its type, which some servers leave out (RFC 3464, section 2.1.2), and with comments. */
function parseAddress(value: string | undefined): string | undefined {
  const text = removeComments(value ?? '');
  const [, address] = /^(?:[\w-]+\s*;)?\s*<?([^\s<>@;]+@[^\s<>@;]+)>?$/.exec(text) ?? [];
  return address?.replaceAll(/\\x\{([0-9a-f]{1,6})\}/gi, (escape: string, hex: string) =>
    decodeCodePoint(escape, hex),
  );
}

/** Decodes a character of an address in ASCII (RFC 6533, section 3). */
function decodeCodePoint(escape: string, hex: string): string {
  const code = Number.parseInt(hex, 16);
  return code <= 0x10ffff ? String.fromCodePoint(code) : escape;
}

/** Parses a keyword, which may have a comment beside it (RFC 3464, section 2.1.1). */
function parseWord(value: string | undefined): string {
  return removeComments(value ?? '')
    .replace(/[.;]$/, '')
    .toLowerCase();
}

function removeComments(value: string): string {
  return value.replaceAll(/\([^()]*\)/g, ' ').trim();
}

/**
 * Tells whether a complaint is about the e-mail to an address. An e-mail has one recipient, whom many providers hide in what
 * they report (RFC 6590): only an address elsewhere is somebody else's.
 */
export function isComplaintAbout(
  { address }: NonNullable<MailReport['complaint']>,
  email: string | null,
): boolean {
  if (address === null || email === null || !isEmailAddress(address)) return true;
  const [one, other] = [address, email].map((text) => findMailbox(text)?.split('@')[1]);
  return one === other || (one ?? '').endsWith('.invalid');
}
