import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { findMailboxKey } from '#platform/kernel/email-address.js';
import { createId } from '#platform/kernel/randomness.js';
import { query, type Queryable } from '#platform/database/connection.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import { MasterKeys, type SealedColumn } from '#platform/database/master-keys.js';
import {
  JobQueue,
  type Job,
  type JobOutcome,
  type JobTable,
} from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { GIVE_UP_SECONDS, MAIL_RETRIES, type Mail } from './mail.js';
import { MESSAGES_PER_ADDRESS_PER_DAY } from './message-limits.service.js';

const PURPOSE = 'mails';
const getContext = (mailId: unknown): string => `mail ${String(mailId)}`;

export const MAIL_COLUMN: SealedColumn = {
  name: 'mails',
  table: 'mail_outbox',
  column: 'sealed',
  id: 'id',
  idType: 'uuid',
  purpose: PURPOSE,
  getContext,
};

export type QueuedMail = { id: string; sealed: Buffer; giveUpAt: Date };

const TABLE: JobTable<QueuedMail> = {
  name: 'mail_outbox',
  key: ['id'],
  columns: { id: 'id', sealed: 'sealed', giveUpAt: 'give_up_at' },
};

/**
 * Stores queued mails. Each is sealed as a whole, since it names a person and may contain a link that signs its reader
 * in. A process that dies after sending a mail and before removing it causes a second copy.
 */
@Injectable()
export class MailOutbox extends JobQueue<QueuedMail> {
  constructor(
    pool: Pool,
    session: ProcessSession,
    private readonly keys: MasterKeys,
    private readonly counts: WindowCounts,
    private readonly config: Config,
  ) {
    super(pool, session, TABLE, MAIL_RETRIES);
  }

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
      text: `insert into mail_outbox (id, sealed, due_at, created_at, give_up_at)
             select id, sealed, now(), now(), coalesce($3::timestamptz, now() + make_interval(secs => $4))
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

  /**
   * Removes an e-mail that was sent or given up, and records the outcome with the retirement notice, if it is one. One that
   * was sent even after the lease, since nobody has to send it again.
   */
  override async finish({ id, leaseUntil }: Job<QueuedMail>, { kind }: JobOutcome): Promise<void> {
    await this.pool.query({
      name: 'mail_outbox_finish',
      text: `
        with gone as (
          delete from mail_outbox where id = $1 and ($2 = 'sent' or due_at = $3::timestamptz) returning id
        )
        update api_retirement_notices n set ended_at = now(), outcome = $2 from gone where n.mail_id = gone.id`,
      values: [id, kind === 'done' ? 'sent' : 'given_up', leaseUntil],
    });
  }

  /** Decrypts an e-mail. @returns null when the master key cannot decrypt it */
  open({ id, sealed }: QueuedMail): Mail | null {
    try {
      return JSON.parse(this.keys.open(PURPOSE, sealed, getContext(id)).toString()) as Mail;
    } catch {
      return null;
    }
  }

  private seal(id: unknown, mail: Mail): Buffer {
    return this.keys.seal(PURPOSE, Buffer.from(JSON.stringify(mail)), getContext(id));
  }
}
