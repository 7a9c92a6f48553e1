import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { ImapFlow } from 'imapflow';
import { eventually } from '../jest/eventually.js';
import { findFreePort } from '../services/program.js';
import { TestAuthority } from '../fixtures/certificates.js';

const PASSWORD = 'p/w@dovecot';

/** This machine's dovecot with one mailbox, over TLS. As root it runs as nobody, who may read nothing else. */
export class Dovecot {
  private child: ReturnType<typeof spawn> | undefined;
  private output = '';

  private constructor(
    private readonly folder: string,
    private readonly port: number,
    /** Trusts its certificate. */
    readonly authorityFile: string,
  ) {}

  static async start(): Promise<Dovecot> {
    const folder = mkdtempSync(join(tmpdir(), 'inkpad-dovecot-'));
    const port = await findFreePort();
    const authority = new TestAuthority(folder);
    authority.issue('DNS:localhost,IP:127.0.0.1', { key: 'key.pem', certificate: 'cert.pem' });
    const isRoot = process.getuid?.() === 0;
    const [user, group] = isRoot ? ['nobody', 'nogroup'] : [userInfo().username, null];
    const mails = join(folder, 'mails');
    mkdirSync(mails);
    chmodSync(folder, 0o755);
    chmodSync(mails, 0o777);
    writeFileSync(
      join(folder, 'dovecot.conf'),
      `
base_dir = ${folder}/run
log_path = /dev/stderr
protocols = imap
listen = 127.0.0.1
ssl = required
ssl_cert = <${folder}/cert.pem
ssl_key = <${folder}/key.pem
default_login_user = ${user}
default_internal_user = ${user}
${group === null ? '' : `default_internal_group = ${group}`}
first_valid_uid = 1
first_valid_gid = 1
mail_location = maildir:${mails}/%u
mail_fsync = never
passdb {
  driver = static
  args = password=${PASSWORD}
}
userdb {
  driver = static
  args = uid=${isRoot ? 65534 : process.getuid?.()} gid=${isRoot ? 65534 : process.getgid?.()} home=${mails}/%u
}
service anvil {
  chroot =
}
service imap-login {
  chroot =
  inet_listener imap {
    port = 0
  }
  inet_listener imaps {
    port = ${port}
    ssl = yes
  }
}
`,
    );
    const dovecot = new Dovecot(folder, port, authority.file);
    await dovecot.comeBack();
    return dovecot;
  }

  /** For BOUNCE_MAILBOX_URL. */
  get url(): string {
    return `imaps://bounces:${encodeURIComponent(PASSWORD)}@localhost:${this.port}`;
  }

  /** Puts a mail into the mailbox. */
  async deliver(mail: string): Promise<void> {
    await this.use((client) => client.append('INBOX', mail.replaceAll(/\r?\n/g, '\r\n')));
  }

  /** Counts the mails that nobody has read yet. */
  countUnseen(): Promise<number> {
    return this.use(async (client) => {
      const status = await client.status('INBOX', { unseen: true });
      return (status && status.unseen) || 0;
    });
  }

  /** Marks all mails as read. */
  async readAll(): Promise<void> {
    await this.use(async (client) => {
      await client.mailboxOpen('INBOX');
      await client.messageFlagsAdd('1:*', ['\\Seen']);
    });
  }

  async comeBack(): Promise<void> {
    this.child = spawn('dovecot', ['-F', '-c', join(this.folder, 'dovecot.conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child.stderr?.on('data', (chunk) => (this.output += String(chunk)));
    await once(this.child, 'spawn');
    await eventually(
      () =>
        this.countUnseen().catch(
          (error: unknown) => `${String(error)} ${this.output.slice(-1000)}`,
        ),
      (value) => typeof value === 'number',
    );
  }

  async goAway(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (!child) return;
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    await gone;
  }

  async stop(): Promise<void> {
    await this.goAway();
    rmSync(this.folder, { recursive: true });
  }

  private async use<R>(work: (client: ImapFlow) => Promise<R>): Promise<R> {
    const client = new ImapFlow({
      host: 'localhost',
      port: this.port,
      secure: true,
      auth: { user: 'bounces', pass: PASSWORD },
      // The client under test checks the certificate.
      tls: { rejectUnauthorized: false },
      logger: false,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await work(client);
    } finally {
      client.close();
    }
  }
}
