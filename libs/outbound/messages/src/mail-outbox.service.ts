import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { Config } from '#configuration/config.js';
import { findMailboxKey } from '#kernel/email-address.js';
import { createId } from '#kernel/randomness.js';
import { DailyCounts, type RunQuery } from '#database/daily-counts.js';
import { MasterKeys } from '#database/master-keys.js';
import type { SealedColumn } from '#database/sealed-column.js';
import { GIVE_UP_SECONDS, type Mail } from './mail.js';

/** Longer than an attempt can last. After that, another dispatcher may claim the e-mail of one that has died. */
const LEASE_SECONDS = 60;

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

/** @property attempts includes the one that the e-mail is claimed for, and so identifies the claim */
export type QueuedMail = {
  id: string;
  /** Null when the master key cannot decrypt it. */
  mail: Mail | null;
  attempts: number;
  createdAt: Date;
  giveUpAt: Date;
};

type MailRow = {
  id: string;
  sealed: Buffer;
  attempts: number;
  created_at: Date;
  give_up_at: Date;
};

const CLAIM = {
  name: 'mail_claim',
  text: `
    with due as (
      select id from mail_outbox where due_at <= now() order by due_at limit $1 for update skip locked
    )
    update mail_outbox m
    set attempts = m.attempts + 1, due_at = now() + interval '${LEASE_SECONDS} seconds'
    from due where m.id = due.id
    returning m.id, m.sealed, m.attempts, m.created_at, m.give_up_at`,
};

/**
 * Stores queued mails. Each is sealed as a whole, since it names a person and may contain a link that signs its reader
 * in. A process that dies after sending a mail and before removing it causes a second copy.
 */
@Injectable()
export class MailOutbox {
  constructor(
    private readonly pool: Pool,
    private readonly keys: MasterKeys,
    private readonly counts: DailyCounts,
    private readonly config: Config,
  ) {}

  /**
   * Adds mails, in the caller's transaction. Stores nothing without a mail server: by the time one is set up, the e-mail
   * would be out of date.
   * @param giveUpAt until when they are retried; by default for a day
   * @returns their ids, none when nothing was stored
   */
  async add(
    client: { query: (statement: pg.QueryConfig) => Promise<unknown> },
    mails: Mail[],
    giveUpAt?: Date,
  ): Promise<string[]> {
    if (this.config.mail === null || mails.length === 0) return [];
    const ids = mails.map(() => createId());
    await client.query({
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

  /** Does the same within a transaction of TypeORM. */
  addWithin(manager: EntityManager, mails: Mail[]): Promise<string[]> {
    const query = ({ text, values }: pg.QueryConfig) => manager.query(text, values);
    return this.add({ query }, mails);
  }

  /**
   * Adds an e-mail to an address that somebody else has entered, unless that got too many in a day from all stores
   * together: this service must not be used to flood a mailbox.
   * @returns null when it was added, else the seconds until another one can be added
   */
  async addForStranger(manager: EntityManager, mail: Mail): Promise<number | null> {
    if (this.config.mail === null) return null;
    const query: RunQuery = (text, values) => manager.query(text, values);
    const subject = ['mails to', findMailboxKey(mail.to)];
    const seconds = await this.counts.count(query, subject, this.config.messagesPerAddressPerDay);
    if (seconds === null) await this.addWithin(manager, [mail]);
    return seconds;
  }

  /** Claims the oldest e-mails that are due; nobody else gets them for a minute. */
  async claim(limit: number): Promise<QueuedMail[]> {
    const { rows } = await this.pool.query<MailRow>({ ...CLAIM, values: [limit] });
    return rows.map((row) => ({
      id: row.id,
      mail: this.open(row),
      attempts: row.attempts,
      createdAt: row.created_at,
      giveUpAt: row.give_up_at,
    }));
  }

  async putOff({ id, attempts }: QueuedMail, until: Date): Promise<void> {
    await this.pool.query({
      name: 'mail_put_off',
      text: 'update mail_outbox set due_at = $3 where id = $1 and attempts = $2',
      values: [id, attempts, until],
    });
  }

  /** Removes a mail that was sent or given up, and records the outcome with the retirement notice, if it is one. */
  async remove({ id }: QueuedMail, outcome: 'sent' | 'given_up'): Promise<void> {
    await this.pool.query({
      name: 'mail_remove',
      text: `
        with gone as (delete from mail_outbox where id = $1 returning id)
        update api_retirement_notices n set ended_at = now(), outcome = $2 from gone where n.mail_id = gone.id`,
      values: [id, outcome],
    });
  }

  private seal(id: unknown, mail: Mail): Buffer {
    return this.keys.seal(PURPOSE, Buffer.from(JSON.stringify(mail)), getContext(id));
  }

  private open({ id, sealed }: MailRow): Mail | null {
    try {
      return JSON.parse(this.keys.open(PURPOSE, sealed, getContext(id)).toString()) as Mail;
    } catch {
      return null;
    }
  }
}
