/**
 * Reads what the server that received an e-mail has found out about its sender (RFC 8601). DMARC accepts a result only if
 * it is about the domain in From, or about one of the same organization (alignment, RFC 7489, section 3.1).
 */
export type MailAuthentication = {
  /** The domains whose DKIM signatures are right, and that of the envelope sender if SPF is. */
  dkim: string[];
  spf: string | null;
  dmarc: string | null;
  /** The headers that are signed by each domain. */
  signedHeaders: Map<string, string[]>;
};

/** @returns undefined when the server says nothing */
export function parseAuthentication(head: string): MailAuthentication | undefined {
  const fields = head
    .replaceAll(/\r?\n[ \t]+/g, ' ')
    .split(/\r?\n/)
    .map((line) => /^([\w-]+)[ \t]*:(.*)$/.exec(line))
    .map((match) => ({ name: match?.[1]?.toLowerCase(), value: match?.[2]?.trim() ?? '' }));
  const results = fields.filter(({ name }) => name === 'authentication-results');
  const [first] = results;
  if (!first) return undefined;
  // The topmost is that of the mailbox's own server. A sender can write others below it.
  const server = getServer(first.value);
  const own = results.filter(({ value }) => getServer(value) === server);
  const parts = own.flatMap(({ value }) => removeComments(value).split(';').slice(1));
  const signatures = fields.filter(({ name }) => name === 'dkim-signature');
  return {
    dkim: parts.flatMap((part) =>
      findPassed(part, 'dkim', /header\.(?:d|i)=(?:[^\s@]*@)?([^\s@]+)/),
    ),
    spf:
      parts.flatMap((part) => findPassed(part, 'spf', /smtp\.\w+=(?:\S*@)?([^\s@]+)/))[0] ?? null,
    dmarc:
      parts
        .map((part) => /^\s*dmarc=(\w+)/i.exec(part)?.[1]?.toLowerCase())
        .find((result) => result !== undefined) ?? null,
    signedHeaders: new Map(
      signatures.map(({ value }) => [
        (/(?:^|;)\s*d=\s*([^;\s]+)/.exec(value)?.[1] ?? '').toLowerCase(),
        (/(?:^|;)\s*h=([^;]+)/.exec(value)?.[1] ?? '')
          .split(':')
          .map((header) => header.trim().toLowerCase()),
      ]),
    ),
  };
}

/**
 * Tells whether two domains are aligned: the same, or one within the other. Two that are side by side may belong to one
 * organization as well, which only a list of all registries would tell.
 */
export function isAligned(one: string, other: string): boolean {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()];
  return a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`);
}

function getServer(value: string): string {
  return removeComments(value).split(';')[0]?.trim().toLowerCase() ?? '';
}

function findPassed(part: string, method: string, domain: RegExp): string[] {
  const isPassed = new RegExp(`^\\s*${method}\\s*=\\s*pass\\b`, 'i').test(part);
  const passedDomain = isPassed ? domain.exec(part)?.[1] : undefined;
  return passedDomain === undefined ? [] : [passedDomain.toLowerCase()];
}

function removeComments(value: string): string {
  return value.replaceAll(/\([^()]*\)/g, ' ');
}
