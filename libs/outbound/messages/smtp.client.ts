import { Injectable } from '@nestjs/common';
import { Config, getAddress } from '#configuration/config.js';
import type { Transporter } from 'nodemailer';
import type { Options as SMTPPoolOptions } from 'nodemailer/lib/smtp-pool/index.js';
import { withTimeout } from '#platform/kernel/with-timeout.js';
import { findMailbox } from '#platform/kernel/email-address.js';
import type { ServerAccess } from '#configuration/setting-decorators.js';
import { createCheckedBody } from '#outbound/sending/outbound-http.client.js';
import { OutboundTunnels } from '#outbound/sending/outbound-tunnels.client.js';
import { ProxyError } from '#outbound/sending/proxy-tunnel.client.js';
import type { IllustratedMail, Mail, MailOutcome, MailPicture } from './mail.js';
import { MESSAGE_ID_FIELD, renderBounceAddress, renderMessageId } from './message-ids.js';
import { renderHeaderText, renderSenderName } from './sender-name.js';

/** The time from the lookup of the name to the server's last reply. */
const DEADLINE_MS = 30_000;
/** A server that is silent for this long is considered dead. */
const SILENCE_TIMEOUT_MS = 10_000;
/** Characters that could begin another header. */
const SEVERAL_LINES = /[\r\n\0]/;

/** How long a connection waits for the next e-mail. Servers close theirs later: after five minutes by RFC 5321, section 4.5.3.2.7. */
const IDLE_TIMEOUT_MS = 1_000;

/**
 * Sends e-mails to the configured mail server. Each has a connection to itself while it is sent, so that none waits for
 * another. The next one takes over the connection, since its opening costs 0.9 ms of processor time, and TLS more.
 */
@Injectable()
export class SmtpClient {
  private readonly tunnels: OutboundTunnels;
  private transport: Promise<Transporter> | undefined;
  /** What is asked right before the text of a mail is written. */
  private readonly checks = new WeakMap<object, () => boolean>();

  constructor(private readonly config: Config) {
    this.tunnels = new OutboundTunnels(config.outboundProxy);
  }

  /**
   * Sends a mail. Never throws: every failure is an outcome, described without anybody's address.
   * @param id the same at every attempt, so that mailboxes can drop a second copy
   * @param cut aborts the attempt
   * @param mayBeSent called once the server has accepted sender and recipient, right before the text is written
   */
  async send(
    id: string,
    mail: Mail | IllustratedMail,
    cut: AbortSignal,
    mayBeSent: () => boolean = () => true,
  ): Promise<MailOutcome> {
    const { mail: settings } = this.config;
    if (!settings?.server) return { kind: 'failed', error: 'No mail server is configured' };
    if ([mail.to, mail.subject].some((text) => SEVERAL_LINES.test(text))) {
      return { kind: 'refused', error: 'a header would have several lines' };
    }
    const address = findMailbox(mail.to) ?? mail.to;
    const senderName = renderSenderName(mail.fromName ?? '');
    let hasBegun = false;
    const message = {
      from:
        senderName === undefined
          ? settings.from
          : { name: senderName, address: getAddress(settings.from) },
      to: { name: '', address },
      envelope: { from: renderBounceAddress(settings.bounceAddress, id), to: address },
      subject: renderHeaderText(mail.subject),
      text: mail.text,
      ...(mail.html !== undefined && { html: mail.html }),
      ...('pictures' in mail && { attachments: mail.pictures.map(toAttachment) }),
      messageId: renderMessageId(id, getDomain(settings.from)),
      headers: {
        'Auto-Submitted': 'auto-generated',
        [MESSAGE_ID_FIELD]: id,
        ...renderUnsubscribe(mail),
      },
      disableFileAccess: true,
      disableUrlAccess: true,
      signal: AbortSignal.any([cut, AbortSignal.timeout(DEADLINE_MS)]),
    };
    this.checks.set(message.signal, () => {
      const isAllowed = mayBeSent();
      hasBegun ||= isAllowed;
      return isAllowed;
    });
    try {
      this.transport ??= this.createTransport(settings.server);
      await (await this.transport).sendMail(message);
      return { kind: 'sent' };
    } catch (error) {
      return toOutcome(error, hasBegun);
    }
  }

  /** Logs in to the mail server and sends nothing. @throws Error whose message names nobody's address */
  async verify(): Promise<void> {
    const server = this.config.mail?.server;
    if (!server) throw new Error('no mail server is configured');
    const transport = await this.createTransport(server);
    try {
      await withTimeout(transport.verify(), DEADLINE_MS);
    } catch (error) {
      throw new Error(toOutcome(error).error, { cause: error });
    } finally {
      transport.close();
    }
  }

  private async createTransport(server: ServerAccess): Promise<Transporter> {
    const { createTransport } = await import('nodemailer');
    const { ehloName } = this.config;
    const options: SMTPPoolOptions = {
      ...toTransportOptions(server),
      pool: true,
      maxConnections: Infinity,
      maxRequeues: 1,
      idleTimeout: IDLE_TIMEOUT_MS,
      ...(ehloName !== undefined && { name: ehloName }),
      getSocket: (_options, done) => {
        this.tunnels.open(server.host, server.port, SILENCE_TIMEOUT_MS).then(
          (connection) => done(null, connection === undefined ? false : { connection }),
          (error: Error) => done(error),
        );
      },
    };
    const transport = createTransport(options);
    transport.use('stream', ({ message, data }, done) => {
      const mayBeSent = data.signal && this.checks.get(data.signal);
      // Nobody reads it before the server has asked for the text.
      if (mayBeSent) message.processFunc((text) => createCheckedBody(text, mayBeSent));
      done();
    });
    return transport;
  }
}

function renderUnsubscribe({ unsubscribeUrl }: Mail): Record<string, string> {
  return unsubscribeUrl === undefined
    ? {}
    : {
        'List-Unsubscribe': `<${unsubscribeUrl}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      };
}

/** Sends credentials over TLS only; without credentials, uses TLS if the server offers it. */
function toTransportOptions({ host, port, tls, login }: ServerAccess) {
  return {
    host,
    port,
    secure: tls,
    requireTLS: login !== null,
    ...(login && { auth: { user: login.user, pass: login.password } }),
    dnsTimeout: SILENCE_TIMEOUT_MS,
    connectionTimeout: SILENCE_TIMEOUT_MS,
    greetingTimeout: SILENCE_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
  };
}

/** Converts a picture to a part beside the HTML that shows it, which mail programs do not list as a file. */
function toAttachment({ cid, png }: MailPicture) {
  return {
    cid,
    content: png,
    filename: `${cid}.png`,
    contentType: 'image/png',
    contentDisposition: 'inline' as const,
  };
}

/** Returns the domain of the sender, with which the ids of messages end. */
export function getDomain(from: string): string {
  return /@([^\s@>]+)>?$/.exec(from)?.[1] ?? 'inkpad';
}

/** The enhanced status code of a reply (RFC 2034, section 4). */
const ENHANCED_STATUS = /^5\d\d[ -](5\.\d{1,3}\.\d{1,3})(?=\s|$)/;

/** Converts an error to an outcome with the codes of the reply only: its text may contain the person's address. */
function toOutcome(error: unknown, hasBegun = false): Exclude<MailOutcome, { kind: 'sent' }> {
  if (error instanceof ProxyError) return { kind: 'failed', error: error.message };
  const { code, response: reply, responseCode, command } = (error ?? {}) as Record<string, unknown>;
  const response = typeof responseCode === 'number' ? `responded with ${responseCode}` : undefined;
  const failure = typeof code === 'string' ? code : 'unknown';
  const where = typeof command === 'string' ? ` at ${command}` : '';
  const refused = command === 'RCPT TO' && typeof responseCode === 'number' && responseCode >= 500;
  const text = `${response ?? failure}${where}`;
  const mayHaveArrived = hasBegun && response === undefined;
  if (!refused) return { kind: 'failed', error: text, ...(mayHaveArrived && { mayHaveArrived }) };
  const status = ENHANCED_STATUS.exec(typeof reply === 'string' ? reply : '')?.[1];
  return { kind: 'refused', error: text, ...(status !== undefined && { status }) };
}
