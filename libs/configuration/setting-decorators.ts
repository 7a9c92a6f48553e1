import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { Invalid, Setting } from '#platform/kernel/setting-decorators.js';

/** A network: its address and how many bits of it count. */
export type AddressRange = [ipaddr.IPv4 | ipaddr.IPv6, number];

/**
 * A mail server, or a proxy that opens tunnels.
 * @property tls from the first byte on; else a mail server gets it as soon as it offers it
 */
export type ServerAccess = {
  host: string;
  port: number;
  tls: boolean;
  login: { user: string; password: string } | null;
};

/** The files of fonts for posters. */
export type PosterFontFiles = { regular: string; bold: string };

export function Certificate(): PropertyDecorator {
  return Setting(parseCertificate, 'must be a certificate in PEM (-----BEGIN CERTIFICATE-----)');
}

/** Declares ranges of IP addresses. @param example for the message */
export function Ranges(example: string): PropertyDecorator {
  return Setting(parseRanges, `must be ranges such as ${example}, separated by commas`);
}

/** Parses PEM; in a text of one line, `\\n` stands for the end of a line. */
export function parsePem(text: string): string | undefined {
  const pem = text.replaceAll('\\n', '\n').trim();
  return /-----BEGIN [A-Z0-9 ]+-----/.test(pem) ? `${pem}\n` : undefined;
}

/** Parses a key in PEM. What OpenSSL says of an invalid one is nothing that a person could act on. */
export function parsePrivateKey(pem: string, passphrase?: string): KeyObject | undefined {
  try {
    return createPrivateKey({ key: pem, ...(passphrase !== undefined && { passphrase }) });
  } catch {
    return undefined;
  }
}

function parseCertificate(text: string): string | undefined {
  const pem = parsePem(text);
  try {
    return pem && new X509Certificate(pem) && pem;
  } catch {
    return undefined;
  }
}

export function parseFactor(text: string): number | undefined {
  const factor = Number(text);
  return Number.isFinite(factor) && factor >= 1 ? factor : undefined;
}

export function parsePosterFonts(text: string): PosterFontFiles | undefined {
  const [regular = '', bold = regular, ...others] = text.split(',').map((file) => file.trim());
  return regular === '' || bold === '' || others.length > 0 ? undefined : { regular, bold };
}

/** Tells whether an address is in one of these ranges. */
export function isInRanges(address: AddressRange[0], ranges: readonly AddressRange[]): boolean {
  return ranges.some((range) => range[0].kind() === address.kind() && address.match(range));
}

export function parseRanges(text: string): AddressRange[] | Invalid | undefined {
  const texts = text.split(',').map((range) => range.trim());
  const isValid = texts.every(
    (range) => isIP(range.split('/')[0] ?? '') && ipaddr.isValidCIDR(range),
  );
  if (!isValid) return undefined;
  const ranges = texts.map((range) => ipaddr.parseCIDR(range));
  return ranges.some(isMapped)
    ? new Invalid('must have IPv4 ranges as such: 10.0.0.0/8, not ::ffff:10.0.0.0/104')
    : ranges;
}

/**
 * Tells whether every address of the range is an IPv4 address in IPv6 notation. Such addresses are converted to IPv4
 * first.
 */
function isMapped([address, bits]: AddressRange): boolean {
  return address instanceof ipaddr.IPv6 && bits >= 96 && address.isIPv4MappedAddress();
}

export function parseMailServer(url: URL): ServerAccess | undefined {
  return parseServer(url, url.protocol === 'smtps:', { tls: 465, plain: 587 });
}

/** A mailbox that is read by IMAP, over TLS only. */
export type MailboxAccess = {
  host: string;
  port: number;
  folder: string;
  login: { user: string; password: string };
};

export function parseMailbox(url: URL): MailboxAccess | undefined {
  const server = parseServer(url, true, { tls: 993, plain: 143 });
  if (!server?.login || url.search !== '') return undefined;
  const { host, port, login } = server;
  try {
    return { host, port, login, folder: decodeURIComponent(url.pathname.slice(1)) || 'INBOX' };
  } catch {
    return undefined;
  }
}

export function parseProxy(url: URL): ServerAccess | undefined {
  if (url.pathname !== '/' || url.search !== '') return undefined;
  return parseServer(url, url.protocol === 'https:', { tls: 443, plain: 80 });
}

function parseServer(
  { hostname, port, username, password }: URL,
  tls: boolean,
  defaultPorts: { tls: number; plain: number },
): ServerAccess | undefined {
  if (hostname === '') return undefined;
  try {
    return {
      host: decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? defaultPorts[tls ? 'tls' : 'plain'] : Number(port),
      tls,
      login:
        username === ''
          ? null
          : { user: decodeURIComponent(username), password: decodeURIComponent(password) },
    };
  } catch {
    // What is percent-encoded wrongly; the text itself may be a password.
    return undefined;
  }
}
