import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { newId } from '#kernel/randomness.js';
import type { Mail } from './mail.js';

/** Longer than an attempt can last: after that, another dispatcher may take the mail of one that has died. */
const LEASE_SECONDS = 60;

/** `attempts` includes the one that the mail is claimed for, and so tells one claim from the next. */
export type QueuedMail = Mail & { id: string; attempts: number; createdAt: Date };

type MailRow = {
  id: string;
  recipient: string;
  subject: string;
  body: string;
  attempts: number;
  created_at: Date;
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
    returning m.id, m.recipient, m.subject, m.body, m.attempts, m.created_at`,
};

/** Mails waiting to be sent. A process that dies after sending a mail and before removing it causes a second copy. */
@Injectable()
export class MailOutbox {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /**
   * Part of the caller's transaction. Without a mail server nothing is stored: once one was set up, the mail would be
   * out of date.
   */
  async add(client: pg.PoolClient, mails: Mail[]): Promise<void> {
    if (this.config.mail === null || mails.length === 0) return;
    await client.query({
      name: 'mail_add',
      text: `insert into mail_outbox (id, recipient, subject, body, due_at, created_at)
             select id, recipient, subject, body, now(), now()
             from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as m (id, recipient, subject, body)`,
      values: [
        mails.map(() => newId()),
        mails.map(({ to }) => to),
        mails.map(({ subject }) => subject),
        mails.map(({ text }) => text),
      ],
    });
  }

  /** Claims the oldest mails that are due; nobody else gets them for a minute. */
  async claim(limit: number): Promise<QueuedMail[]> {
    const { rows } = await this.pool.query<MailRow>({ ...CLAIM, values: [limit] });
    return rows.map((row) => ({
      id: row.id,
      to: row.recipient,
      subject: row.subject,
      text: row.body,
      attempts: row.attempts,
      createdAt: row.created_at,
    }));
  }

  async putOff({ id, attempts }: QueuedMail, until: Date): Promise<void> {
    await this.pool.query({
      name: 'mail_put_off',
      text: 'update mail_outbox set due_at = $3 where id = $1 and attempts = $2',
      values: [id, attempts, until],
    });
  }

  /** The mail was sent, or is not tried any more. */
  async remove({ id }: QueuedMail): Promise<void> {
    await this.pool.query({
      name: 'mail_remove',
      text: 'delete from mail_outbox where id = $1',
      values: [id],
    });
  }
}
