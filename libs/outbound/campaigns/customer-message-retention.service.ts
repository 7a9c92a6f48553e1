import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { workDaily } from '#platform/event-store/log/follow-log.js';
import { OCCASION_DAYS } from './campaign.js';

const BATCH_SIZE = 1_000;
/** Messages that have their outcome, and whose outcome was recorded. */
const IS_FINISHED = 'm.finished_at < now() - make_interval(days => $1) and m.due_at is null';

function renderDelete(selection: string): string {
  return `with old as materialized (${selection}),
    silent as (delete from silent_messages where message_id in (select id from old))
    delete from customer_messages where id in (select id from old)`;
}

/** The counts of announcements that were sent are stored with them. Those of others come from their messages. */
const OF_ANNOUNCEMENTS = {
  name: 'customer_messages_delete_of_announcements',
  text: renderDelete(`select m.id from customer_messages m
    where m.announcement_id is not null and ${IS_FINISHED} and exists (
      select from campaigns a where a.kind = 'announcement' and a.id = m.announcement_id and a.state = 'sent')
    order by m.finished_at limit ${BATCH_SIZE} for update of m skip locked`),
};

/**
 * A message of a rule keeps its occasion from being used twice, so it stays until no check can find the occasion any more.
 * A rule that is enabled is checked from `checked_until` on, and any other from the time at which it is enabled.
 */
const OF_RULES = {
  name: 'customer_messages_delete_of_rules',
  text: renderDelete(`select m.id from campaigns r
    cross join lateral (
      select n.id from customer_messages n
      where n.rule_id = r.id and n.created_at <
        case when r.due_at is null then now() else least(r.checked_until, now()) end
          - make_interval(days => greatest($1, case when r.state <> 'deleted' then ($2::jsonb ->> (r.trigger ->> 'kind'))::int end))
      order by n.created_at limit ${BATCH_SIZE}) old
    join customer_messages m on m.id = old.id
    where r.kind = 'rule' and ${IS_FINISHED}
    limit ${BATCH_SIZE} for update of m skip locked`),
};

/** Deletes messages to holders that were finished long ago, where a setting says so. */
@Injectable()
export class CustomerMessageRetention {
  private readonly log = new Logger('messages to customers');

  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    const { messageRetentionDays: days } = this.config;
    if (days === null) return;
    await workDaily(this.log, signal, async () => {
      const ofAnnouncements = await this.deleteOfAnnouncements(days);
      const ofRules = await this.deleteOfRules(days);
      return Math.max(ofAnnouncements, ofRules) === BATCH_SIZE;
    });
  }

  /** Deletes a batch of the messages of announcements. @returns how many it had */
  async deleteOfAnnouncements(days: number): Promise<number> {
    return (await this.pool.query({ ...OF_ANNOUNCEMENTS, values: [days] })).rowCount ?? 0;
  }

  /** Deletes a batch of the messages of rules. @returns how many it had */
  async deleteOfRules(days: number): Promise<number> {
    const values = [days, JSON.stringify(OCCASION_DAYS)];
    return (await this.pool.query({ ...OF_RULES, values })).rowCount ?? 0;
  }
}
