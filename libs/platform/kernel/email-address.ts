import { domainToASCII, domainToUnicode } from 'node:url';
import { normalizeIdentifier } from './text.js';

const MAX_CHARACTERS = 254;
/** Enough for whatever becomes an address of 254 characters; normalising longer texts takes too long. */
const MAX_UNITS = 4 * MAX_CHARACTERS;
/** RFC 5322's special characters need quotes, and mail programs read several addresses or a name into them. */
const ADDRESS = /^(?<local>[^\s@"<>(),;:\\]+)@(?<domain>[^\s@"<>(),;:\\]+)$/u;
/** Means something else than a character of a name where a URL's host is parsed, as `domainToASCII` does. */
const NO_NAME = /[\p{Cc}%/?#[\]^|]/u;
/** RFC 1035, section 2.3.4: labels of 63 octets at most, 253 together. A name ends with no number (RFC 3696, section 2). */
const A_LABELS = /^(?=.{1,253}$)(?:[^.]{1,63}\.)+(?!\d+$)[^.]{1,63}$/;
/** An A-label that stands for nothing stays as it is. */
const NO_A_LABEL = /(?:^|\.)xn--/;

/** @property local in NFKC @property domain as A-labels */
type Mailbox = { local: string; domain: string };

/** Returns the address as it is stored and shown: in NFKC, without what cannot be seen. Addresses are compared by their key (ADR-0088). */
export function normalizeEmailAddress(text: string): string {
  const visible = normalizeIdentifier(text);
  return visible.length > MAX_UNITS ? visible : visible.normalize('NFKC');
}

/** Tells whether mail could go there. Only an e-mail that arrives shows that an address is right. */
export function isEmailAddress(text: string): boolean {
  return parseMailbox(text) !== undefined;
}

/**
 * Returns what two spellings of an address have in common, and no two addresses: the local part ignoring case, by
 * Unicode's rules whatever the language of server and database, and the domain as DNS knows it. Nothing else is compared.
 * @returns undefined for what is no address
 */
export function findEmailKey(address: string): string | undefined {
  const mailbox = parseMailbox(address);
  return mailbox && `${foldLocalPart(mailbox.local)}@${mailbox.domain}`;
}

/**
 * Returns what addresses have in common that lead to one mailbox, for counting e-mails to it: their key without a tag
 * (`ann+list@…`), which many mail servers ignore. What is no address is returned as it is.
 */
export function findMailboxKey(address: string): string {
  return findEmailKey(address)?.replace(/\+[^@]*/, '') ?? address;
}

/** @throws Error for what is no address, which callers refuse before */
export function getEmailKey(address: string): string {
  const key = findEmailKey(address);
  if (key === undefined) throw new Error('this is no e-mail address');
  return key;
}

/**
 * Returns the address as mail servers are given it. The domain is the one that the key has: a mail program that
 * made it ASCII by rules of its own could write to another one.
 * @returns undefined for what is no address
 */
export function findMailbox(address: string): string | undefined {
  const mailbox = parseMailbox(address);
  return mailbox && `${mailbox.local}@${mailbox.domain}`;
}

/**
 * Returns the address with its domain in the letters that people read, whatever it was typed as.
 * @returns undefined for what is no address
 */
export function findReadableAddress(address: string): string | undefined {
  const mailbox = parseMailbox(address);
  return mailbox && `${mailbox.local}@${domainToUnicode(mailbox.domain)}`;
}

export function isSameAddress(one: string, other: string): boolean {
  const key = findEmailKey(one);
  return key !== undefined && key === findEmailKey(other);
}

function parseMailbox(text: string): Mailbox | undefined {
  const address = normalizeEmailAddress(text);
  if (address.length > MAX_UNITS || [...address].length > MAX_CHARACTERS) return undefined;
  const { local = '', domain = '' } = ADDRESS.exec(address)?.groups ?? {};
  const labels = toALabels(domain);
  return local === '' || labels === undefined ? undefined : { local, domain: labels };
}

function toALabels(domain: string): string | undefined {
  if (NO_NAME.test(domain)) return undefined;
  const labels = domainToASCII(domain);
  return A_LABELS.test(labels) && !NO_A_LABEL.test(domainToUnicode(labels)) ? labels : undefined;
}

/**
 * Folds the case of a local part. Both small sigmas are one letter; which of them a capital becomes depends on what
 * follows it.
 */
function foldLocalPart(local: string): string {
  return local.toLowerCase().normalize('NFKC').replaceAll('ς', 'σ');
}
