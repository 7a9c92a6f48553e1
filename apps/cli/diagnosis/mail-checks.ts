import { randomUUID } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { domainToASCII } from 'node:url';
import type { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { isAligned, parseAuthentication } from '#outbound/messages/mail-authentication.js';
import { describeMailboxError, Mailbox } from '#outbound/messages/mailbox.client.js';
import { renderBounceAddress } from '#outbound/messages/message-ids.js';
import { getDomain, SmtpClient } from '#outbound/messages/smtp.client.js';
import { ok, warning, wrong, type Check, type Finding } from './finding.js';

const DNS_TIMEOUT_MS = 3_000;
/** How long the e-mail to ourselves may take. */
const ARRIVAL_MS = 60_000;
const POLL_MS = 2_000;
const MAILBOX_MS = 30_000;
/** What a DKIM signature must cover, so that mail programs show their button to unsubscribe (RFC 8058, section 4). */
const UNSUBSCRIBE = ['list-unsubscribe', 'list-unsubscribe-post'];

/** The part of DNS that is needed. */
export type Dns = Pick<Resolver, 'resolveTxt' | 'resolveMx'>;
type Mail = NonNullable<Config['mail']>;

/** Checks whether e-mails are sent, arrive, and count as those of their sender. */
export function checkMail(
  config: Config,
  dns: Dns = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: 2 }),
): Check[] {
  const { mail, bounceMailbox } = config;
  if (mail === null) {
    const text = 'nothing is sent: set SMTP_URL and MAIL_FROM (docs/operating/connect.md, E-mails)';
    return [() => Promise.resolve([warning('e-mail', text)])];
  }
  const [from, bounces] = [mail.from, mail.bounceAddress].map((address) =>
    domainToASCII(getDomain(address)),
  ) as [string, string];
  return [
    () => checkSpf(dns, bounces),
    () => checkDmarc(dns, from),
    () => checkMx(dns, bounces),
    () => checkServer(config),
    ...(bounceMailbox === null ? [checkNoMailbox] : [() => checkMailbox(config, mail, from)]),
  ];
}

async function checkSpf(dns: Dns, domain: string): Promise<Finding[]> {
  const name = 'SPF';
  const records = await findTexts(dns, domain, 'v=spf1');
  if (records instanceof Error) return [warning(name, describeDnsError(domain, records))];
  const [record] = records;
  if (record === undefined) {
    return [
      warning(
        name,
        `${domain} has no SPF record: add the TXT record that your mail provider names (v=spf1 …)`,
      ),
    ];
  }
  return records.length > 1
    ? [wrong(name, `${domain} has ${records.length} SPF records, so none counts: make one of them`)]
    : [ok(name, `${domain} has "${record}"`)];
}

async function checkDmarc(dns: Dns, domain: string): Promise<Finding[]> {
  const name = 'DMARC';
  const labels = domain.split('.');
  // The record of a domain counts for those below it.
  for (let i = 0; i < Math.max(1, labels.length - 1); i++) {
    const at = `_dmarc.${labels.slice(i).join('.')}`;
    const records = await findTexts(dns, at, 'v=DMARC1');
    if (records instanceof Error) return [warning(name, describeDnsError(at, records))];
    const [record] = records;
    if (record !== undefined) return [ok(name, `${at} has "${record}"`)];
  }
  return [
    warning(
      name,
      `${domain} has no DMARC record, which large providers want: add the TXT record "v=DMARC1; p=none" at _dmarc.${domain}`,
    ),
  ];
}

async function checkMx(dns: Dns, domain: string): Promise<Finding[]> {
  const name = 'BOUNCE_ADDRESS';
  const text = `nobody receives mail for ${domain}, so no server can report a bounce: set BOUNCE_ADDRESS to an address that works`;
  const records = await dns.resolveMx(domain).catch((error: Error) => error);
  if (records instanceof Error) {
    return isMissing(records)
      ? [wrong(name, text)]
      : [warning(name, describeDnsError(domain, records))];
  }
  const hosts = records.map(({ exchange }) => exchange).filter((host) => host !== '');
  return hosts.length === 0
    ? [wrong(name, text)]
    : [ok(name, `mail for ${domain} goes to ${hosts.join(', ')}`)];
}

async function checkServer(config: Config): Promise<Finding[]> {
  const name = 'SMTP_URL';
  try {
    await new SmtpClient(config).verify();
    return [ok(name, 'the mail server accepts the login')];
  } catch (error) {
    return [
      wrong(
        name,
        `the mail server cannot be used (${getErrorMessage(error)}): check host, port, name and password`,
      ),
    ];
  }
}

function checkNoMailbox(): Promise<Finding[]> {
  return Promise.resolve([
    warning(
      'BOUNCE_MAILBOX_URL',
      'no mailbox is read, so bounces that come later are not noticed, and DKIM cannot be checked here',
    ),
  ]);
}

/** Sends an e-mail to our own mailbox, and reads there what its server has found out about it. */
async function checkMailbox(config: Config, mail: Mail, from: string): Promise<Finding[]> {
  const { bounceMailbox, outboundProxy } = config;
  if (bounceMailbox === null) return [];
  const name = 'BOUNCE_MAILBOX_URL';
  const signal = AbortSignal.timeout(MAILBOX_MS + 2 * ARRIVAL_MS);
  try {
    const mailbox = await Mailbox.open(bounceMailbox, outboundProxy, signal);
    try {
      const readable = [ok(name, 'the mailbox can be read')];
      return [...readable, ...(await checkArrival(config, mail, { from, mailbox, signal }))];
    } finally {
      await mailbox.close();
    }
  } catch (error) {
    return [wrong(name, `the mailbox cannot be read: ${describeMailboxError(error)}`)];
  }
}

async function checkArrival(
  config: Config,
  mail: Mail,
  { from, mailbox, signal }: { from: string; mailbox: Mailbox; signal: AbortSignal },
): Promise<Finding[]> {
  const name = 'delivery';
  const id = randomUUID();
  const bounceAddress = renderBounceAddress(mail.bounceAddress, id);
  const outcome = await new SmtpClient(config).send(
    id,
    {
      to: bounceAddress,
      subject: 'Inkpad checks its e-mails',
      text: 'inkpad doctor has sent this e-mail to itself. You can delete it.',
      unsubscribeUrl: `${config.publicUrl}/`,
    },
    signal,
  );
  if (outcome.kind !== 'sent') {
    return [wrong(name, `an e-mail to ${bounceAddress} was not accepted: ${outcome.error}`)];
  }
  const lastAt = performance.now() + ARRIVAL_MS;
  do {
    const head = await mailbox.findHead(id);
    if (head !== undefined) return describeAuthentication(head, from);
    await pause(POLL_MS, signal);
  } while (performance.now() < lastAt && !signal.aborted);
  return [
    wrong(
      name,
      `the e-mail to ${bounceAddress} is not in the mailbox after a minute: check that it is the mailbox of that address, and the server's log`,
    ),
  ];
}

/** Says whether what arrived counts as mail of the domain in MAIL_FROM. */
export function describeAuthentication(head: string, from: string): Finding[] {
  const authentication = parseAuthentication(head);
  const arrived = ok('delivery', 'an e-mail from Inkpad has arrived in the mailbox');
  if (!authentication) {
    const text =
      'the mailbox’s server says nothing about DKIM and SPF (no Authentication-Results): send a card link to a mailbox elsewhere, and look at its original';
    return [arrived, warning('DKIM', text)];
  }
  const { dkim, spf, dmarc, signedHeaders } = authentication;
  const signer =
    dkim.find((domain) => isAligned(domain, from)) ?? (dmarc === 'pass' ? dkim[0] : undefined);
  const covered = signer === undefined ? [] : (signedHeaders.get(signer) ?? []);
  return [
    arrived,
    signer === undefined
      ? wrong(
          'DKIM',
          dkim.length === 0
            ? `no signature is right: switch on DKIM for ${from} at your mail provider`
            : `signed by ${dkim.join(', ')}, which is not ${from}: have your mail provider sign for the domain of MAIL_FROM`,
        )
      : ok('DKIM', `signed by ${signer}, which is aligned with ${from}`),
    ...(signer === undefined
      ? []
      : [
          UNSUBSCRIBE.every((header) => covered.includes(header))
            ? ok('unsubscribing', 'the signature covers List-Unsubscribe and List-Unsubscribe-Post')
            : warning(
                'unsubscribing',
                'the signature must cover List-Unsubscribe and List-Unsubscribe-Post, or mail programs show no button for it (RFC 8058)',
              ),
        ]),
    spf !== null && isAligned(spf, from)
      ? ok('SPF of that e-mail', `passed for ${spf}, which is aligned with ${from}`)
      : warning(
          'SPF of that e-mail',
          spf === null
            ? 'did not pass: name your mail server in the SPF record'
            : `passed for ${spf}, which is not ${from}: DMARC counts DKIM alone`,
        ),
  ];
}

async function findTexts(dns: Dns, domain: string, start: string): Promise<string[] | Error> {
  const records = await dns.resolveTxt(domain).catch((error: Error) => error);
  if (records instanceof Error) return isMissing(records) ? [] : records;
  const isWanted = new RegExp(`^${start}(?:[\\s;]|$)`, 'i');
  return records.map((chunks) => chunks.join('')).filter((text) => isWanted.test(text));
}

function isMissing(error: Error): boolean {
  return ['ENOTFOUND', 'ENODATA'].includes(String((error as NodeJS.ErrnoException).code));
}

function describeDnsError(name: string, error: Error): string {
  return `${name} could not be looked up (${String((error as NodeJS.ErrnoException).code)}): try again later`;
}
