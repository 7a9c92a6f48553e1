import { Injectable, Logger } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { inTransaction, isTransient } from '#platform/database/connection.js';
import { MailOutbox } from './mail-outbox.service.js';
import {
  RECENT_DAYS,
  findDueOccasion,
  renderRetirementMail,
  MAX_NAMED_TOKENS,
  type AffectedUser,
  type Occasion,
  type Retirement,
} from './retirement-announcement.js';

const POLL_INTERVAL_MS = 60_000;
const MIN_INTERVAL_MS = 500;
const BATCH_SIZE = 200;
/** Weeks remain, so that a mail server that is down for some days must not lose an announcement. */
const GIVE_UP_DAYS = 7;
const DAY_MS = 24 * 3_600_000;

/** Locks one retirement until a batch is committed. SKIP LOCKED: one dispatcher at a time sends its announcements. */
const OPEN_RETIREMENT = `
  select now() as now, id, version, deprecated_at as "deprecatedAt", sunset_at as "sunsetAt", notified_at as "notifiedAt",
    sunset_notified_at as "sunsetNotifiedAt", reminded_sunset_at as "remindedSunsetAt"
  from api_retirements where withdrawn_at is null order by id for no key update skip locked limit 1`;

/** Finds users to notify. Uses the clock of the database, as everywhere where a wrong clock would do harm. */
const AFFECTED = `
  select u.id, u.email, u.name,
    (select a.locale from memberships m join accounts a on a.id = m.account_id
     where m.user_id = u.id order by a.id limit 1) as locale,
    (select json_agg(json_build_object('name', t.name, 'usedAt', t.last_used_at) order by t.last_used_at desc)
     from (select name, last_used_at from api_tokens
           where user_id = u.id and last_used_at >= now() - interval '${RECENT_DAYS} days'
           order by last_used_at desc limit ${MAX_NAMED_TOKENS + 1}) t) as tokens
  from users u
  where u.removed_at is null
    and exists (select from api_tokens t
                where t.user_id = u.id and t.last_used_at >= now() - interval '${RECENT_DAYS} days')
    and not exists (select from api_retirement_announcements n
                    where n.retirement_id = $1 and n.occasion = $2 and n.sunset_at is not distinct from $3
                      and n.user_id = u.id)
  order by u.id limit ${BATCH_SIZE}`;

const RECORD_ANNOUNCEMENTS = `
  insert into api_retirement_announcements (retirement_id, occasion, sunset_at, user_id, mail_id, recorded_at)
  select $1::bigint, $2, $3::timestamptz, user_id, mail_id, now() from unnest($4::bigint[], $5::uuid[]) n (user_id, mail_id)`;

/** Records that all users were notified. A reminder replaces the other announcements. */
const MARK_NOTIFIED = `
  update api_retirements set
    notified_at = coalesce(notified_at, now()),
    sunset_notified_at = case when sunset_at is null then sunset_notified_at else coalesce(sunset_notified_at, now()) end,
    reminded_sunset_at = case when $2::boolean then sunset_at else reminded_sunset_at end
  where id = $1`;

type AffectedRow = Omit<AffectedUser, 'tokens'> & {
  id: number;
  tokens: { name: string; usedAt: string }[];
};

/** Notifies users whose tokens were used lately that a version is being retired: each once on each occasion. */
@Injectable()
export class RetirementAnnouncements {
  private readonly log = new Logger('versions');

  constructor(
    private readonly pool: Pool,
    private readonly outbox: MailOutbox,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    const intervalMs = Math.max(MIN_INTERVAL_MS, POLL_INTERVAL_MS / this.config.webhookTimeScale);
    while (!signal.aborted) {
      try {
        let hasMore = true;
        while (hasMore && !signal.aborted) hasMore = await this.notifyBatch();
      } catch (error) {
        const level = isTransient(error) ? 'warn' : 'error';
        this.log[level](`users cannot be told of a retirement: ${getErrorMessage(error)}`);
      }
      await pause(intervalMs, signal);
    }
  }

  /**
   * Stores mails, their recipients and the progress in one transaction, so that nobody is notified twice or forgotten.
   * @returns whether there may be more to do at once
   */
  private async notifyBatch(): Promise<boolean> {
    const result = await inTransaction(this.pool, async (client) => {
      const { rows } = await client.query<Retirement & { now: Date }>(OPEN_RETIREMENT);
      const [retirement] = rows;
      const occasion = retirement && findDueOccasion(retirement, retirement.now);
      if (!occasion) return undefined;
      const users = await this.notify(client, retirement, occasion, retirement.now);
      if (users.length < BATCH_SIZE)
        await client.query(MARK_NOTIFIED, [retirement.id, occasion === 'reminder']);
      return { occasion, users };
    });
    if (!result) return false;
    this.logNotified(result);
    return true;
  }

  /** Notifies a batch of users. @returns their ids */
  private async notify(
    client: pg.PoolClient,
    retirement: Retirement,
    occasion: Occasion,
    now: Date,
  ): Promise<number[]> {
    const key = [retirement.id, occasion, occasion === 'reminder' ? retirement.sunsetAt : null];
    const { rows } = await client.query<AffectedRow>(AFFECTED, key);
    const mails = rows.map((row) =>
      renderRetirementMail(occasion, retirement, toAffectedUser(row), this.config.publicUrl),
    );
    const giveUpAt = new Date(now.getTime() + GIVE_UP_DAYS * DAY_MS);
    const mailIds = await this.outbox.add(client, mails, giveUpAt);
    const users = rows.map(({ id }) => id);
    await client.query(RECORD_ANNOUNCEMENTS, [
      ...key,
      users,
      users.map((_, i) => mailIds[i] ?? null),
    ]);
    return users;
  }

  private logNotified({ occasion, users }: { occasion: Occasion; users: number[] }): void {
    if (this.config.mail !== null) {
      this.log.log('users are told by e-mail that a version is being retired', {
        occasion,
        users: users.length,
      });
      return;
    }
    for (const userId of users) {
      this.log.warn(
        'a user is not told that a version is being retired: there is no mail server (SMTP_URL)',
        { occasion, user_id: userId },
      );
    }
  }
}

function toAffectedUser({ tokens, ...user }: AffectedRow): AffectedUser {
  return {
    ...user,
    tokens: tokens.map(({ name, usedAt }) => ({ name, usedAt: new Date(usedAt) })),
  };
}
