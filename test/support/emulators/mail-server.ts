import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

export type ReceivedMail = {
  to: string;
  /** The envelope sender. */
  sender: string;
  from: string;
  subject: string;
  text: string;
  /** Empty where there is none. */
  html: string;
  /** By their content ids. */
  pictures: Map<string, Buffer>;
  headers: string;
};

/** With a dot and no literal of an address, as relays such as Google's want it (RFC 5321, section 4.1.1.1). */
const FULL_NAME = /^(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*$/i;

function refuse(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

/** A real SMTP server that can fail in the ways that tests need. It refuses clients without the name of a host. */
export class MailServer {
  /** By which clients have introduced themselves. */
  readonly clientNames = new Set<string>();
  readonly received: ReceivedMail[] = [];
  /** Connections that were opened. */
  connectionCount = 0;
  /** Mails that were started, including those without a response yet. */
  startedCount = 0;
  private server: SMTPServer | undefined;
  private port = 0;
  private hanging = false;
  /** Recipients that were named, including those without a response yet. */
  named = 0;
  private recipientsHeld: Promise<void> = Promise.resolve();
  /** Addresses that are refused, with what the server says. */
  private readonly refused = new Map<string, string>();

  static async start(): Promise<MailServer> {
    const server = new MailServer();
    await server.comeBack();
    return server;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.port}`;
  }

  /** Whether from now on mails get no response. */
  hang(hanging: boolean): void {
    this.hanging = hanging;
  }

  /** @param status an enhanced code such as 5.1.1; left out: the server gives none */
  refuse(recipient: string, status?: string): void {
    this.refused.set(recipient, `${status === undefined ? '' : `${status} `}no ${recipient} here`);
  }

  accept(recipient: string): void {
    this.refused.delete(recipient);
  }

  /** The next recipients get no response until they are released. @returns releases them */
  holdRecipients(): () => void {
    let release: () => void = () => undefined;
    this.recipientsHeld = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  /** Starts again on the same port. */
  async comeBack(): Promise<void> {
    const server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      hideENHANCEDSTATUSCODES: true,
      closeTimeout: 10,
      onConnect: (_session, done) => {
        this.connectionCount++;
        done();
      },
      onMailFrom: (_address, { hostNameAppearsAs: name }, done) => {
        this.clientNames.add(name);
        done(FULL_NAME.test(name) ? null : refuse(421, `${name} is not the name of a host`));
      },
      onRcptTo: ({ address }, _session, done) => {
        this.named++;
        void this.recipientsHeld.then(() => {
          const reason = this.refused.get(address);
          done(reason === undefined ? null : refuse(550, reason));
        });
      },
      onData: (stream, { envelope }, done) => {
        this.startedCount++;
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => {
          if (this.hanging) return;
          const to = envelope.rcptTo.map(({ address }) => address).join(' ');
          const sender = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
          this.received.push({ to, sender, ...read(Buffer.concat(chunks).toString()) });
          done();
        });
      },
    });
    // Killed clients reset their connections.
    server.on('error', () => undefined);
    this.server = server;
    await new Promise<void>((resolve) => {
      const listener = server.listen(this.port, '127.0.0.1', resolve);
      listener.once('listening', () => {
        this.port = (listener.address() as AddressInfo).port;
      });
    });
  }

  async goAway(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server) await new Promise<void>((resolve) => server.close(resolve));
  }
}

function read(mail: string): Omit<ReceivedMail, 'to' | 'sender'> {
  const { headers, header } = findPart(mail);
  const parts = listParts(mail);
  const textOf = (type: string) =>
    parts
      .filter((part) => part.header('content-type').startsWith(type))
      .map(decode)
      .join('');
  return {
    headers,
    from: decodeWords(header('from')),
    subject: decodeWords(header('subject')),
    text: textOf('text/plain'),
    html: textOf('text/html'),
    pictures: new Map(
      parts
        .filter((part) => part.header('content-type').startsWith('image/'))
        .map((part) => [
          part.header('content-id').replaceAll(/[<>]/g, ''),
          Buffer.from(part.content, 'base64'),
        ]),
    ),
  };
}

/** Lists the parts of a mail, also those within others. */
function listParts(text: string): ReturnType<typeof findPart>[] {
  const part = findPart(text);
  const [, boundary] = /boundary="([^"]+)"/.exec(part.header('content-type')) ?? [];
  if (boundary === undefined) return [part];
  return part.content
    .split(`--${boundary}`)
    .slice(1, -1)
    .flatMap((inner) => listParts(inner.slice(2)));
}

function findPart(text: string) {
  const end = text.indexOf('\r\n\r\n');
  const headers = text.slice(0, end).replaceAll(/\r\n\s+/g, ' ');
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(headers)?.[1] ?? '';
  return { headers, header, content: text.slice(end + 4) };
}

function decode({ header, content }: ReturnType<typeof findPart>): string {
  const text = {
    'quoted-printable': () => decodeQuotedPrintable(content.replaceAll('=\r\n', '')),
    base64: () => Buffer.from(content, 'base64').toString(),
  }[header('content-transfer-encoding')];
  return (text?.() ?? content).replaceAll('\r\n', '\n');
}

/** Without the encoded words of RFC 2047. */
function decodeWords(value: string): string {
  return value
    .replaceAll(/\?= =\?/g, '?==?')
    .replaceAll(/=\?UTF-8\?Q\?(.*?)\?=/g, (_, word: string) =>
      decodeQuotedPrintable(word.replaceAll('_', ' ')),
    )
    .replaceAll(/=\?UTF-8\?B\?(.*?)\?=/g, (_, word: string) =>
      Buffer.from(word, 'base64').toString(),
    );
}

function decodeQuotedPrintable(text: string): string {
  const bytes = text.replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString();
}
