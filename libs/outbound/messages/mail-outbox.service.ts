import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { findMailboxKey } from '#platform/kernel/email-address.js';
import { createId } from '#platform/kernel/randomness.js';
import { query, type Queryable } from '#platform/database/connection.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import { MasterKeys, type SealedColumn } from '#platform/database/master-keys.js';
import { GIVE_UP_SECONDS, type Mail } from './mail.js';
import { MESSAGES_PER_ADDRESS_PER_DAY } from './message-limits.service.js';
import type { LoadedMessage, Message, MessageKind } from './message-sending.service.js';

const PURPOSE = 'mails';
const NOT_OPENED = {
  kind: 'failed',
  error: 'cannot be decrypted with the master key. Check that MASTER_KEY belongs to this database',
} as const;
const getContext = (mailId: unknown): string => `mail ${String(mailId)}`;

export const MAIL_COLUMN: SealedColumn = {
  name: 'mails',
  table: 'outgoing_messages',
  column: 'sealed',
  id: 'uuid',
  idType: 'uuid',
  purpose: PURPOSE,
  getContext,
};

/**
 * Stores e-mails of the service to its users and to operators. Each is sealed as a whole, since it names a person and may
 * contain a link that signs its reader in. A process that dies after sending a mail and before removing it causes a second
 * copy.
 */
@Injectable()
export class MailOutbox implements MessageKind {
  readonly name = 'mail';
  readonly channels = ['email'] as const;
  readonly isSentOnce = false;
  readonly isRecorded = false;
  readonly limits = null;
  private readonly log = new Logger('mail');

  constructor(
    private readonly keys: MasterKeys,
    private readonly counts: WindowCounts,
    private readonly config: Config,
  ) {}

  /**
   * Adds mails, in the caller's transaction. Stores nothing without a mail server: by the time one is set up, the e-mail
   * would be out of date.
   * @param giveUpAt until when they are retried; by default for a day
   * @returns their ids, none when nothing was stored
   */
  async add(transaction: Queryable, mails: Mail[], giveUpAt?: Date): Promise<string[]> {
    if (this.config.mail === null || mails.length === 0) return [];
    const ids = mails.map(() => createId());
    await query(transaction, {
      name: 'mail_add',
      text: `insert into outgoing_messages (kind, uuid, account_id, channel, sealed, due_at, give_up_at)
             select 'mail', id, 0, 'email', sealed, now(), coalesce($3::timestamptz, now() + make_interval(secs => $4))
             from unnest($1::uuid[], $2::bytea[]) as m (id, sealed)`,
      values: [
        ids,
        mails.map((mail, i) => this.seal(ids[i], mail)),
        giveUpAt ?? null,
        GIVE_UP_SECONDS,
      ],
    });
    return ids;
  }

  /**
   * Adds an e-mail to an address that somebody else has entered, unless that got too many in a day from all stores
   * together: this service must not be used to flood a mailbox.
   * @returns null when it was added, else the seconds until another one can be added
   */
  async addForStranger(transaction: Queryable, mail: Mail): Promise<number | null> {
    if (this.config.mail === null) return null;
    const subject = ['mails to', findMailboxKey(mail.to)];
    const seconds = await this.counts.addUpTo(transaction, subject, MESSAGES_PER_ADDRESS_PER_DAY);
    if (seconds === null) await this.add(transaction, [mail]);
    return seconds;
  }

  /** Loads an e-mail. One that cannot be decrypted is retried like any other, and meanwhile the operator is alerted. */
  async load(message: Pick<Message, 'uuid' | 'sealed'>): Promise<LoadedMessage> {
    return {
      customerId: null,
      skipReason: null,
      audibleAt: 0,
      choose: () => ({ channel: 'email', reason: null }),
      render: async () => {
        const mail = this.open(message);
        if (mail) return { kind: 'email', mail, customerCardId: null };
        this.log.error(`mail ${message.uuid} ${NOT_OPENED.error}`);
        return NOT_OPENED;
      },
    };
  }

  /** Decrypts an e-mail. @returns null when the master key cannot decrypt it */
  open({ uuid, sealed }: Pick<Message, 'uuid' | 'sealed'>): Mail | null {
    if (sealed === null) return null;
    try {
      return JSON.parse(this.keys.open(PURPOSE, sealed, getContext(uuid)).toString()) as Mail;
    } catch {
      return null;
    }
  }

  private seal(id: unknown, mail: Mail): Buffer {
    return this.keys.seal(PURPOSE, Buffer.from(JSON.stringify(mail)), getContext(id));
  }
}
