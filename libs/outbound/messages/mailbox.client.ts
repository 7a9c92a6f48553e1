import { connect } from 'node:tls';
import type { FetchMessageObject, ImapFlow, MessageStructureObject } from 'imapflow';
import type { Config } from '#configuration/config.js';
import type { MailboxAccess } from '#configuration/setting-decorators.js';
import { OutboundTunnels } from '#outbound/sending/outbound-tunnels.client.js';
import { isReportPart, type ReceivedMail } from './bounce-report.js';
import { MESSAGE_ID_FIELD, RECIPIENT_FIELDS } from './message-ids.js';

/** A server that is silent for this long is considered dead. */
const SILENCE_TIMEOUT_MS = 20_000;
/** What is read of a part of a mail. Reports need much less. */
const MAX_PART_BYTES = 64 * 1024;
/** What a server may send in one response. */
const MAX_LITERAL_BYTES = 4 * MAX_PART_BYTES;
/** Parts of one mail, parts within parts included. */
const MAX_PARTS = 20;

/** Reads the mailbox to which mail servers report. */
export class Mailbox {
  private constructor(private readonly client: ImapFlow) {}

  /** Opens the folder. @param signal ends the connection, whatever it is doing */
  static async open(
    { host, port, login, folder }: MailboxAccess,
    outboundProxy: Config['outboundProxy'],
    signal: AbortSignal,
  ): Promise<Mailbox> {
    const { ImapFlow } = await import('imapflow');
    const tunnels = new OutboundTunnels(outboundProxy);
    const tunnel = await tunnels.open(host, port, SILENCE_TIMEOUT_MS);
    const client = new ImapFlow({
      host,
      port,
      secure: true,
      auth: { user: login.user, pass: login.password },
      logger: false,
      disableAutoIdle: true,
      connectionTimeout: SILENCE_TIMEOUT_MS,
      greetingTimeout: SILENCE_TIMEOUT_MS,
      socketTimeout: SILENCE_TIMEOUT_MS,
      maxLiteralSize: MAX_LITERAL_BYTES,
      ...(tunnel && {
        transport: {
          connect: ({ servername = host }, onConnect) =>
            connect({ socket: tunnel, servername }, onConnect),
        },
      }),
    });
    // Each failure is also that of the call that waits for it.
    client.on('error', () => undefined);
    signal.addEventListener('abort', () => client.close(), { once: true });
    try {
      signal.throwIfAborted();
      await client.connect();
      await client.mailboxOpen(folder);
      return new Mailbox(client);
    } catch (error) {
      client.close();
      throw error;
    }
  }

  /** Lists what nobody has read yet, oldest first. */
  async listUnseen(): Promise<number[]> {
    const uids = await this.client.search({ seen: false }, { uid: true });
    return (uids || []).sort((a, b) => a - b);
  }

  /** Reads those parts of a mail that a report consists of, and of returned mails their heads only. */
  async readReport(uid: number): Promise<ReceivedMail> {
    const mail = await this.fetch(uid, { bodyStructure: true, headers: RECIPIENT_FIELDS });
    const head = mail?.headers?.toString().slice(0, MAX_PART_BYTES) ?? '';
    const parts = (mail?.bodyStructure ? listParts(mail.bodyStructure) : []).filter(({ type }) =>
      isReportPart(type),
    );
    if (parts.length === 0) return { head, parts: [] };
    const fetched = await this.fetch(uid, {
      bodyParts: parts.map(({ key }) => ({ key, start: 0, maxLength: MAX_PART_BYTES })),
    });
    return {
      head,
      parts: parts.map(({ key, type, encoding }) => ({
        type,
        text: decode(fetched?.bodyParts?.get(key.toLowerCase()), encoding),
      })),
    };
  }

  /** Finds the head of an e-mail of ours by its id, and marks it as seen. */
  async findHead(id: string): Promise<string | undefined> {
    await this.client.noop();
    const search = { header: { [MESSAGE_ID_FIELD]: id } };
    const [uid] = (await this.client.search(search, { uid: true })) || [];
    if (uid === undefined) return undefined;
    const mail = await this.fetch(uid, { headers: true });
    await this.markSeen(uid);
    return mail?.headers?.toString() ?? '';
  }

  async markSeen(uid: number): Promise<void> {
    await this.client.messageFlagsAdd(String(uid), ['\\Seen'], { uid: true });
  }

  async close(): Promise<void> {
    await this.client.logout().catch(() => this.client.close());
  }

  private async fetch(
    uid: number,
    query: Parameters<ImapFlow['fetchOne']>[1],
  ): Promise<FetchMessageObject | undefined> {
    return (await this.client.fetchOne(String(uid), query, { uid: true })) || undefined;
  }
}

/** Says why a mailbox cannot be read, without name and password. */
export function describeMailboxError(error: unknown): string {
  const { authenticationFailed, mailboxMissing, code, message } = (error ?? {}) as Record<
    string,
    unknown
  >;
  if (authenticationFailed === true) return 'the server refuses the name or password';
  if (mailboxMissing === true) return 'the server has no such folder';
  return String(code ?? message ?? 'unknown');
}

type Part = { key: string; type: string; encoding: string };

function listParts(root: MessageStructureObject): Part[] {
  const parts: Part[] = [];
  const waiting = [root];
  for (let node = waiting.shift(); node && parts.length < MAX_PARTS; node = waiting.shift()) {
    const type = node.type.toLowerCase();
    const part = node.part ?? '1';
    // What is within a returned mail is no report about it.
    const isReturned = type === 'message/rfc822' || type === 'message/global';
    // A server that does not look into a returned mail has no head of it, and may have it encoded (RFC 6532, section 3.7).
    const hasHead = isReturned && (type === 'message/rfc822' || node.childNodes !== undefined);
    const key = hasHead ? `${part}.HEADER` : part;
    parts.push({ key, type, encoding: hasHead ? '' : (node.encoding ?? '') });
    if (!isReturned) waiting.push(...(node.childNodes ?? []));
  }
  return parts;
}

function decode(content: Buffer | undefined, encoding: string): string {
  const text = content?.toString() ?? '';
  switch (encoding.toLowerCase()) {
    case 'base64':
      return Buffer.from(text, 'base64').toString();
    case 'quoted-printable':
      return decodeQuotedPrintable(content?.toString('latin1') ?? '').toString();
    default:
      return text;
  }
}

/** Decodes the bytes of a text (RFC 2045, section 6.7). @param text a character for each byte */
function decodeQuotedPrintable(text: string): Buffer {
  const bytes = text
    .replaceAll(/=[ \t]*\r?\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return Buffer.from(bytes, 'latin1');
}
